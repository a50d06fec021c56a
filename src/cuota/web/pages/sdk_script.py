"""`pay.js` for the merchant's page, its types and the sandbox's inspector, each read once a process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.web.served import ServedFile, make, serve
from cuota.web.service import service_of

_FOLDER = Path(__file__).resolve().parent / "static"
_SCRIPT = "text/javascript; charset=utf-8"
_TYPES = "text/plain; charset=utf-8"
_SHORT = "public, max-age=300"
_FOREVER = "public, max-age=31536000, immutable"


@lru_cache(maxsize=8)
def _read(name: str) -> ServedFile:
    return make((_FOLDER / name).read_bytes(), _TYPES if name.endswith(".d.ts") else _SCRIPT)


@lru_cache(maxsize=1)
def _pinned() -> dict[str, ServedFile]:
    """The script of now, and those of earlier releases that were kept beside it as `pay-<digest>.js`."""
    scripts = [_read(path.name) for path in _FOLDER.glob("pay*.js")]
    return {script.digest: script for script in scripts}


def _answer(request: Request, script: ServedFile, caching: str) -> Response:
    """Any page of any merchant may load it, also with `crossorigin` and from a cross-origin isolated page."""
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Cache-Control": caching,
        "Content-Security-Policy": "default-src 'none'",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return serve(request, script, headers)


async def pay_js(request: Request) -> Response:
    """`GET /v1/pay.js`: the newest of version 1."""
    return _answer(request, _read("pay.js"), _SHORT)


async def pinned(request: Request) -> Response:
    """`GET /v1/pay-<digest>.js`: always these bytes, so that a page may ask for their integrity."""
    script = _pinned().get(request.path_params["digest"])
    if script is None:
        raise Refused(Code.NOT_FOUND, "There is no such release of the script. /v1/pay.js is the newest.")
    return _answer(request, script, _FOREVER)


async def types(request: Request) -> Response:
    """`GET /v1/pay.d.ts`: the script's types."""
    return _answer(request, _read("pay.d.ts"), _SHORT)


async def inspector(request: Request) -> Response:
    """`GET /v1/inspect.js`: what `pay.js?inspect` loads; only where no real money moves."""
    if not service_of(request).settings.sandbox:
        raise Refused(Code.NOT_FOUND, "The inspector is part of the sandbox.")
    return _answer(request, _read("inspect.js"), _SHORT)
