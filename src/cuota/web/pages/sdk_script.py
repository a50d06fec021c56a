"""Serves `pay.js` for merchants' pages, its TypeScript types, and the sandbox's inspector.

Each process reads each file once.
"""

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
    """Return the current script and the scripts of earlier releases, by digest.

    Earlier releases are files named `pay-<digest>.js` in the same folder.
    """
    scripts = [_read(path.name) for path in _FOLDER.glob("pay*.js")]
    return {script.digest: script for script in scripts}


def _answer(request: Request, script: ServedFile, caching: str) -> Response:
    """Serve a script with headers that let every page load it, even with `crossorigin` or cross-origin isolation."""
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Cache-Control": caching,
        "Content-Security-Policy": "default-src 'none'",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return serve(request, script, headers)


async def pay_js(request: Request) -> Response:
    """`GET /v1/pay.js`: return the newest release of version 1."""
    return _answer(request, _read("pay.js"), _SHORT)


async def pinned(request: Request) -> Response:
    """`GET /v1/pay-<digest>.js`: return the release with this digest. It never changes, so a page can pin it by integrity."""
    script = _pinned().get(request.path_params["digest"])
    if script is None:
        raise Refused(
            Code.NOT_FOUND, "There is no such release of the script. /v1/pay.js is the newest release."
        )
    return _answer(request, script, _FOREVER)


async def types(request: Request) -> Response:
    """`GET /v1/pay.d.ts`: return the TypeScript types of the script."""
    return _answer(request, _read("pay.d.ts"), _SHORT)


async def inspector(request: Request) -> Response:
    """`GET /v1/inspect.js`: return the inspector, which `pay.js?inspect` loads. It exists in the sandbox only."""
    if not service_of(request).settings.sandbox:
        raise Refused(Code.NOT_FOUND, "The inspector is part of the sandbox.")
    return _answer(request, _read("inspect.js"), _SHORT)
