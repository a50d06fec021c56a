"""Checks an exchange against the OpenAPI document: each answer of the service must be as its contract says.

contract = Contract(); contract.check("POST", "/order", 200, response.headers, response.content, request_body=body)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from cuota.web.docs.contract import load_contract
from support.contract_formats import FORMATS

ROOT = "urn:contract"
FORM = "application/x-www-form-urlencoded"


def read_json(body: bytes | str) -> Any:
    """Parse JSON with exact decimals. NaN and Infinity are errors."""
    return json.loads(body, parse_float=Decimal, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class Contract:
    """The OpenAPI document. The validator of each schema is built when it is first needed."""

    def __init__(self, base_url: str = "https://pay.example") -> None:
        self.document: dict[str, Any] = dict(load_contract(base_url).items())
        resource = Resource.from_contents(self.document, default_specification=DRAFT202012)
        self._registry: Registry[Any] = Registry().with_resource(ROOT, resource)
        self._validator = cache(self._build)
        self._paths = [(_pattern(path), path) for path in self.document["paths"]]

    def check(
        self,
        method: str,
        path: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        request_body: bytes | None,
        lenient: bool = False,
    ) -> None:
        """Raise an AssertionError that names the difference, unless the document allows this exchange.

        `lenient`: the merchant has the lenient profile, so the request may break the field rules.
        """
        where = f"{method} {path} -> {status}"
        verb = "get" if method == "HEAD" else method.lower()
        at, responses = self._responses(verb, urlsplit(path).path)
        found = responses.get(str(status))
        assert found is not None, f"{where}: status not in the contract, which has {sorted(responses)}"
        at, response = self.follow(f"{at}/{status}", found)
        self._check_headers(response.get("headers", {}), headers, where)
        if status == 204:
            assert not body, where
        elif method != "HEAD":
            self._check_body(at, response.get("content", {}), headers, body, where)
        if 200 <= status < 300 and request_body is not None and not lenient:
            self._check_request(verb, urlsplit(path).path, request_body, where)

    def check_event(self, body: bytes) -> dict[str, Any]:
        """Return the parsed body of a webhook or of a feed's event. Raise AssertionError if `webhooks` does not allow it."""
        event = read_json(body)
        assert event["type"] in self.document["webhooks"], f"{event['type']} is not in the contract"
        post = f"#/webhooks/{event['type']}/post"
        self._check_value(
            f"{post}/requestBody/content/application~1json/schema", "application/json", body, "the event"
        )
        return dict(event)

    def check_event_headers(self, type_: str, headers: Mapping[str, str]) -> None:
        """Raise AssertionError unless a webhook has the headers that `webhooks` requires."""
        listed = self.document["webhooks"][type_]["post"]["parameters"]
        named = {str(self.follow("", reference)[1]["name"]): reference for reference in listed}
        self._check_headers(named, headers, type_)

    def follow(self, at: str, value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Follow references, and return the real place of a value as a JSON pointer, and the value."""
        while "$ref" in value:
            at = value["$ref"]
            value = self.at(at)
        return at, value

    def at(self, pointer: str) -> Any:
        """Return the part of the document at `#/a/b`. Raises KeyError if there is none."""
        value: Any = self.document
        for name in pointer.removeprefix("#/").split("/"):
            value = value[name.replace("~1", "/").replace("~0", "~")]
        return value

    def errors(self, pointer: str, value: object) -> list[str]:
        """Return, in words, how a value breaks the schema at `#/a/b`."""
        found = sorted(
            self._validator(pointer).iter_errors(value), key=lambda error: list(error.absolute_path)
        )
        return [self._words(error) for error in found]

    def template(self, path: str) -> str | None:
        """Return the document's path for a real path: `/order/{orderId}` for `/order/123/`."""
        bare = path.removesuffix("/") if len(path) > 1 else path
        return next((template for pattern, template in self._paths if pattern.fullmatch(bare)), None)

    def _responses(self, verb: str, path: str) -> tuple[str, Mapping[str, Any]]:
        template = self.template(path)
        if template is None:
            return "#/x-unlisted-path", self.document["x-unlisted-path"]
        operation = self.document["paths"][template].get(verb)
        if operation is None:
            return "#/x-unlisted-method", self.document["x-unlisted-method"]
        return f"#/paths/{_escape(template)}/{verb}/responses", operation["responses"]

    def _check_headers(self, wanted: Mapping[str, Any], headers: Mapping[str, str], where: str) -> None:
        sent = {name.lower(): value for name, value in headers.items()}
        for name, reference in wanted.items():
            at, header = self.follow("", reference)
            value = sent.get(name.lower())
            assert value is not None or not header["required"], f"{where}: the header {name} is missing"
            if value is not None:
                typed = int(value) if header["schema"]["type"] == "integer" and value.isdecimal() else value
                wrong = self.errors(f"{at}/schema", typed)
                assert not wrong, f"{where}: the header {name} is {value!r}: {wrong}"

    def _check_body(
        self, at: str, content: Mapping[str, Any], headers: Mapping[str, str], body: bytes, where: str
    ) -> None:
        sent = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
        media = sent.split(";")[0].strip().lower()
        assert media in content, (
            f"{where}: content type {sent!r} not in the contract, which has {sorted(content)}"
        )
        self._check_value(f"{at}/content/{_escape(media)}/schema", media, body, f"{where}: the answer")

    def _check_request(self, verb: str, path: str, body: bytes, where: str) -> None:
        template = self.template(path) or ""
        content = self.document["paths"][template][verb].get("requestBody", {}).get("content", {})
        media = FORM if FORM in content and not body.lstrip().startswith(b"{") else "application/json"
        if media in content:
            pointer = f"#/paths/{_escape(template)}/{verb}/requestBody/content/{_escape(media)}/schema"
            self._check_value(pointer, media, body, f"{where}: the request was accepted, but")

    def _check_value(self, pointer: str, media: str, body: bytes, where: str) -> None:
        try:
            value = (
                body.decode()
                if media.startswith("text/")
                else read_json(body)
                if "json" in media
                else _form(body)
                if media == FORM
                # A file: its bytes are in no schema.
                else body.decode("latin-1")
            )
        except ValueError as error:
            raise AssertionError(f"{where} is not {media}: {error}: {body[:400]!r}") from error
        wrong = self.errors(pointer, value)
        assert not wrong, f"{where} breaks {pointer}:\n  " + "\n  ".join(wrong) + f"\n  body: {body[:2000]!r}"

    def _build(self, pointer: str) -> Draft202012Validator:
        schema = {"$ref": ROOT + pointer}
        return Draft202012Validator(schema, registry=self._registry, format_checker=FORMATS)

    def _words(self, error: Any) -> str:
        """Return the innermost cause, because an error of `oneOf` alone says nothing."""
        inner = [self._words(part) for part in error.context or []]
        text = f"{error.json_path}: {error.message[:300]}"
        return f"{text} ({'; '.join(inner[:4])})" if inner else text


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
