"""`GET /openapi.json`: the OpenAPI document of the merchant API. Each process builds it once from `web/docs/openapi`."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from cuota.web.docs.bundle import bundle
from cuota.web.served import ServedFile, make, serve
from cuota.web.service import service_of

PLACEHOLDER = "https://pay.example"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "public, max-age=300",
}


@lru_cache(maxsize=8)
def load_contract(base_url: str) -> dict[str, object]:
    """Return the OpenAPI document with the address of this service.

    The result is cached and shared by all callers, so do not change it.
    """
    filled: dict[str, object] = _fill(bundle(), base_url.rstrip("/"))
    return filled


def _fill(value: Any, base_url: str) -> Any:
    if isinstance(value, dict):
        return {key: _fill(part, base_url) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, base_url) for part in value]
    return value.replace(PLACEHOLDER, base_url) if isinstance(value, str) else value


async def openapi_json(request: Request) -> Response:
    """`GET /openapi.json`: return the OpenAPI document."""
    return serve(request, _document(service_of(request).settings.public_url), HEADERS)


@lru_cache(maxsize=8)
def _document(base_url: str) -> ServedFile:
    text = json.dumps(load_contract(base_url), ensure_ascii=False, separators=(",", ":"))
    return make(text.encode(), "application/json")
