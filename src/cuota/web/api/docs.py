"""The contract of the merchant API, as a document (`/openapi.json`) and as a page to read (`/docs`).

Both are made from `web/openapi.yaml`, once per process. What the page shows of an operation is in `docs_view`,
of a schema in `docs_fields`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import yaml
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cuota.web.api.docs_fields import Prose, dotted, shapes
from cuota.web.api.docs_view import chapters, operations, webhooks
from cuota.web.service import service_of

PLACEHOLDER = "https://pay.example"
CSP = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_WEB = Path(__file__).resolve().parent.parent
_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "public, max-age=300",
}


@lru_cache(maxsize=8)
def load_contract(base_url: str) -> dict[str, object]:
    """The OpenAPI document with the address of this service filled in. Shared: read it, do not change it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load((_WEB / "openapi.yaml").read_text("utf-8"), Loader=loader)  # noqa: S506 - a safe one
    filled: dict[str, object] = _fill(document, base_url.rstrip("/"))
    return filled


def _fill(value: Any, base_url: str) -> Any:
    if isinstance(value, dict):
        return {key: _fill(part, base_url) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, base_url) for part in value]
    return value.replace(PLACEHOLDER, base_url) if isinstance(value, str) else value


async def openapi_json(request: Request) -> Response:
    """`GET /openapi.json`: the document for machines."""
    return Response(_document(_base_url(request)), media_type="application/json", headers=_HEADERS)


async def home(request: Request) -> Response:
    """`GET /`: a person who opens the service's address reads what it is."""
    del request
    return RedirectResponse("/docs", 303, _HEADERS)


async def docs_page(request: Request) -> Response:
    """`GET /docs`: the same for people."""
    return Response(_page(_base_url(request)), media_type="text/html", headers=_HEADERS)


def _base_url(request: Request) -> str:
    return service_of(request).settings.public_url


@lru_cache(maxsize=8)
def _document(base_url: str) -> bytes:
    return json.dumps(load_contract(base_url), ensure_ascii=False, separators=(",", ":")).encode()


@lru_cache(maxsize=8)
def _page(base_url: str) -> bytes:
    contract: dict[str, Any] = load_contract(base_url)
    schemas = contract["components"]["schemas"]
    prose = Prose(_link_targets(contract))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_WEB / "pages" / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["dotted"] = dotted
    environment.filters["prose"] = prose.blocks
    environment.filters["inline"] = prose.inline
    page = environment.get_template("docs.html").render(
        info=contract["info"],
        base_url=contract["servers"][0]["url"],
        chapters=chapters(contract),
        event=shapes(contract, schemas["Event"], "")[0].rows,
        problem=shapes(contract, _any_problem(schemas), "")[0].rows,
        codes=schemas["ErrorCode"]["x-codes"],
        token_codes=schemas["TokenErrorCode"]["x-codes"],
        sandbox=contract["x-sandbox"],
    )
    return page.encode()


def _any_problem(schemas: dict[str, Any]) -> dict[str, Any]:
    """Every field that an error may have."""
    everywhere, sometimes = schemas["Problem"], schemas["DuplicateProblem"]
    return {**everywhere, "properties": {**sometimes["properties"], **everywhere["properties"]}}


def _link_targets(contract: dict[str, Any]) -> dict[str, str]:
    """What a text in backticks links to: error codes, operations named as `GET /order`, types of events."""
    targets = {code: code for code in contract["components"]["schemas"]["ErrorCode"]["enum"]}
    for method, path, operation in operations(contract):
        targets[f"{method} {path}"] = operation["operationId"]
    for name, call in webhooks(contract):
        targets[name] = call["operationId"]
    return targets
