"""What the page at `/docs` shows of an operation: parameters, body, a curl line, and every answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from cuota.web.api.docs_fields import Row, Shape, deref, shapes


def operations(contract: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and operation, in the order of the document."""
    return [
        (method.upper(), path, operation)
        for path, item in contract["paths"].items()
        for method, operation in item.items()
    ]


def webhooks(contract: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Event type and the call that we make, in the order of the document."""
    return [(name, item["post"]) for name, item in contract["webhooks"].items()]


def chapters(contract: dict[str, Any]) -> list[dict[str, Any]]:
    """One chapter for each tag, with its operations, and its events where we are the one who calls."""
    views = [_operation(contract, *operation) for operation in operations(contract)]
    events = [_event(contract, *webhook) for webhook in webhooks(contract)]
    return [
        {
            **tag,
            "id": tag["name"].lower(),
            "operations": [view for view in views if view["tag"] == tag["name"]],
            "events": [event for event in events if event["tag"] == tag["name"]],
        }
        for tag in contract["tags"]
    ]


def _event(contract: dict[str, Any], name: str, call: dict[str, Any]) -> dict[str, Any]:
    (part,) = call["requestBody"]["content"].values()
    return {
        "id": call["operationId"],
        "tag": call["tags"][0],
        "type": name,
        "summary": call["summary"],
        "description": call["description"],
        "headers": [
            row for item in call["parameters"] for row in _parameter_rows(contract, deref(contract, item))
        ],
        "examples": _examples(contract, part),
    }


def _operation(contract: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    parameters = [deref(contract, item) for item in operation.get("parameters", [])]
    content = operation.get("requestBody", {}).get("content", {})
    bodies = [{"media": media, "examples": _examples(contract, part)} for media, part in content.items()]
    fields = (
        shapes(contract, next(iter(content.values()))["schema"], "", request=True)[0].rows if content else []
    )
    return {
        "id": operation["operationId"],
        "tag": operation["tags"][0],
        "method": method,
        "path": path,
        "summary": operation["summary"],
        "description": operation["description"],
        "bearer": "security" not in operation,
        "proof": _proof(path, bodies),
        "parameters": [row for item in parameters for row in _parameter_rows(contract, item)],
        "body": fields,
        "bodies": bodies,
        "curl": _curl(contract, method, path, operation, parameters, bodies),
        "answers": [
            _answer(contract, status, deref(contract, part))
            for status, part in operation["responses"].items()
        ],
    }


def _proof(path: str, bodies: list[dict[str, Any]]) -> str:
    """What stands in place of an access token."""
    if path.startswith(("/sdk/", "/orders/")):
        return "No token: the signature says who asks."
    if bodies:
        return "Client id and secret, in the body or in HTTP Basic, instead of a token."
    return "No token needed."


def _parameter_rows(contract: dict[str, Any], parameter: dict[str, Any]) -> list[Row]:
    """A parameter reads like the one field of an object; its place stands before its type."""
    schema = {
        "type": "object",
        "required": [parameter["name"]] if parameter["required"] else [],
        "properties": {parameter["name"]: {**parameter["schema"], "description": parameter["description"]}},
    }
    rows = shapes(contract, schema, "", request=True)[0].rows
    return [replace(row, type=f"{parameter['in']}, {row.type}") for row in rows]


def _answer(contract: dict[str, Any], status: str, answer: dict[str, Any]) -> dict[str, Any]:
    # An answer may have no body: a yes to the browser, a redirect.
    content = answer.get("content", {"": {"schema": {}, "examples": {}}})
    # Of several media the first is the one that programs read.
    media, part = next(iter(content.items()))
    parts: list[Shape] = shapes(contract, part["schema"], "What comes back") if status == "200" else []
    return {
        "status": status,
        "description": answer["description"],
        "media": media,
        "shapes": [shape for shape in parts if shape.rows],
        "examples": _examples(contract, part),
        "headers": [name for name in answer["headers"] if name != "X-Request-Id"],
    }


def _examples(contract: dict[str, Any], part: dict[str, Any]) -> list[dict[str, str]]:
    found = {name: deref(contract, example) for name, example in part["examples"].items()}
    return [
        {"name": name, "summary": item["summary"], "text": _pretty(item["value"])}
        for name, item in found.items()
    ]


def _pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _curl(
    contract: dict[str, Any],
    method: str,
    path: str,
    operation: dict[str, Any],
    parameters: list[dict[str, Any]],
    bodies: list[dict[str, Any]],
) -> str:
    needed = {p["name"]: next(iter(p["examples"].values()))["value"] for p in parameters if p["required"]}
    query = "&".join(
        f"{p['name']}={needed[p['name']]}" for p in parameters if p["in"] == "query" and p["required"]
    )
    url = contract["servers"][0]["url"] + path.format_map(needed) + (f"?{query}" if query else "")
    lines = [f"curl {'' if method == 'GET' else f'-X {method} '}'{url}'"]
    if "security" not in operation:
        lines.append('-H "Authorization: Bearer $ACCESS_TOKEN"')
    lines += [
        f"-H '{p['name']}: {needed[p['name']]}'" for p in parameters if p["in"] == "header" and p["required"]
    ]
    if bodies:
        lines.append(f"-H 'Content-Type: {bodies[0]['media']}'")
        lines.append(f"-d '{bodies[0]['examples'][0]['text']}'")
    return " \\\n  ".join(lines)
