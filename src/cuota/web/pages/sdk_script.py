"""`pay.js` for the merchant's page, its types and the sandbox's inspector, each read once a process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.web.service import service_of

_FOLDER = Path(__file__).resolve().parent / "static"
_SCRIPT = "text/javascript; charset=utf-8"
_TYPES = "text/plain; charset=utf-8"
_SHORT = "public, max-age=300"
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Script:
    """A file as it is served. `digest` is what stands in the address of a pinned one."""

    content: bytes
    digest: str


@lru_cache(maxsize=8)
def _read(name: str) -> Script:
    content = (_FOLDER / name).read_bytes()
    return Script(content, hashlib.sha256(content).hexdigest()[:16])


@lru_cache(maxsize=1)
def _pinned() -> dict[str, Script]:
    """The script of now, and those of earlier releases that were kept beside it as `pay-<digest>.js`."""
    scripts = [_read(path.name) for path in _FOLDER.glob("pay*.js")]
    return {script.digest: script for script in scripts}


def _answer(request: Request, script: Script, kind: str, caching: str) -> Response:
    """Any page of any merchant may load it, also with `crossorigin` and from a cross-origin isolated page."""
    tag = f'"{script.digest}"'
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Cache-Control": caching,
        "Content-Security-Policy": "default-src 'none'",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "ETag": tag,
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(script.content, headers={**headers, "Content-Type": kind})


async def pay_js(request: Request) -> Response:
    """`GET /v1/pay.js`: the newest of version 1."""
    return _answer(request, _read("pay.js"), _SCRIPT, _SHORT)


async def pinned(request: Request) -> Response:
    """`GET /v1/pay-<digest>.js`: always these bytes, so that a page may ask for their integrity."""
    script = _pinned().get(request.path_params["digest"])
    if script is None:
        raise Refused(Code.NOT_FOUND, "There is no such release of the script. /v1/pay.js is the newest.")
    return _answer(request, script, _SCRIPT, _FOREVER)


async def types(request: Request) -> Response:
    """`GET /v1/pay.d.ts`: the script's types."""
    return _answer(request, _read("pay.d.ts"), _TYPES, _SHORT)


async def inspector(request: Request) -> Response:
    """`GET /v1/inspect.js`: what `pay.js?inspect` loads; only where no real money moves."""
    if not service_of(request).settings.sandbox:
        raise Refused(Code.NOT_FOUND, "The inspector is part of the sandbox.")
    return _answer(request, _read("inspect.js"), _SCRIPT, _SHORT)
