"""What the page at `/docs` shows of a schema: one row for each field, in words. Also its small texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

_FORMATS = {"uuid": "GUID", "date-time": "time", "date": "date", "uri": "address", "email": "text"}
_TYPES = {
    "string": "text",
    "boolean": "true or false",
    "integer": "integer",
    "number": "number",
    "null": "null",
}
_LONG = 12  # more values than a reader wants in a cell
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Row:
    """One field: its dotted name, its type in words, whether it is always there, and its rule."""

    name: str
    type: str
    required: bool
    rule: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one shape that a body may have."""

    title: str
    rows: list[Row]


class Prose:
    """Turns the contract's texts into HTML: paragraphs, lists with `- `, and code in backticks, which may link."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets

    def inline(self, text: str) -> Markup:
        """One line of text."""
        parts = _CODE.split(text)
        return Markup().join(
            self._code(part) if index % 2 else escape(part) for index, part in enumerate(parts)
        )

    def blocks(self, text: str) -> Markup:
        """Paragraphs and lists, parted by empty lines."""
        return Markup("\n").join(self._block(block) for block in text.strip().split("\n\n"))

    def _block(self, block: str) -> Markup:
        if not block.startswith("- "):
            return Markup("<p>{}</p>").format(self.inline(block))
        items = [
            Markup("<li>{}</li>").format(self.inline(line)) for line in block.removeprefix("- ").split("\n- ")
        ]
        return Markup("<ul>{}</ul>").format(Markup().join(items))

    def _code(self, text: str) -> Markup:
        target = self._targets.get(text)
        if target is None:
            return Markup("<code>{}</code>").format(text)
        return Markup('<a href="#{}"><code>{}</code></a>').format(target, text)


def dotted(name: str) -> Markup:
    """A field's name that may break after its dots."""
    return Markup(".<wbr>").join(name.split("."))


def deref(contract: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Follow a `$ref` inside the document; what stands beside it wins."""
    found = dict(value)
    while "$ref" in found:
        target: Any = contract
        for name in found.pop("$ref").removeprefix("#/").split("/"):
            target = target[name.replace("~1", "/").replace("~0", "~")]
        found = {**target, **found}
    return found


def shapes(
    contract: Mapping[str, Any], schema: Mapping[str, Any], title: str, *, request: bool = False
) -> list[Shape]:
    """The shapes that a body may have: one, or each of `oneOf`."""
    whole = deref(contract, schema)
    if "oneOf" not in whole:
        return [Shape(title, list(_rows(contract, whole, "", request=request)))]
    named = [(part.get("$ref", "").rsplit("/", 1)[-1], deref(contract, part)) for part in whole["oneOf"]]
    return [
        Shape(
            "With dryRun=true" if name == "DryRun" else title,
            list(_rows(contract, part, "", request=request)),
        )
        for name, part in named
    ]


def _rows(
    contract: Mapping[str, Any], schema: Mapping[str, Any], prefix: str, *, request: bool
) -> Iterator[Row]:
    required = schema.get("required", [])
    for name, part in schema.get("properties", {}).items():
        field, nullable = _plain(contract, part)
        inner = deref(contract, field["items"]) if field.get("type") == "array" else field
        rule = " ".join(filter(None, (field.get("description", ""), _limits(field, request=request))))
        words = _type(contract, field) + (" or null" if nullable and not request else "")
        yield Row(prefix + name, words, name in required, rule)
        path = f"{prefix}{name}{'[]' if inner is not field else ''}."
        yield from _rows(contract, inner, path, request=request)


def _plain(contract: Mapping[str, Any], part: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A field without its `or null`, and whether it had one."""
    field = deref(contract, part)
    choices = [deref(contract, choice) for choice in field.get("anyOf", [])]
    real = [choice for choice in choices if choice.get("type") != "null"]
    if real:
        return {**real[0], **{key: value for key, value in field.items() if key != "anyOf"}}, len(real) < len(
            choices
        )
    kinds = field.get("type")
    if isinstance(kinds, list):
        return {**field, "type": kinds[0]}, "null" in kinds
    return field, False


def _type(contract: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    if "oneOf" in field:
        return " or ".join(_type(contract, deref(contract, choice)) for choice in field["oneOf"])
    if field.get("format") in _FORMATS:
        return _FORMATS[field["format"]]
    if field.get("type") == "array":
        inner = deref(contract, field["items"])
        return "list of objects" if "properties" in inner else f"list of {_type(contract, inner)}s"
    return _TYPES.get(field.get("type", ""), "object")


def _limits(field: Mapping[str, Any], *, request: bool) -> str:
    """The limits that the description need not repeat."""
    if len(field.get("enum", [])) > _LONG:
        return ""
    if "enum" in field:
        return "One of " + ", ".join(f"`{value}`" for value in field["enum"] if value is not None) + "."
    if "const" in field:
        shown = str(field["const"]).lower() if isinstance(field["const"], bool) else field["const"]
        return f"{'Must be' if request else 'Always'} `{shown}`."
    if not request:
        return ""
    texts = [part for part in field.get("oneOf", [field]) if part.get("type") == "string"]
    numbers = [part for part in field.get("oneOf", []) if part.get("type") == "number"]
    return _length(texts[0]) if texts and not numbers else ""


def _length(field: Mapping[str, Any]) -> str:
    low, high = field.get("minLength", 0), field.get("maxLength")
    if high is None:
        return ""
    if low == high:
        return f"Exactly {high} characters."
    return f"{low} to {high:,} characters." if low else f"At most {high:,} characters."
