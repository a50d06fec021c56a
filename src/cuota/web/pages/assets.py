"""Serves style sheets, scripts and the operator's logo. Each process reads each file once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.web.served import ServedFile, make, serve
from cuota.web.service import service_of

BRAND_CSS = "brand.css"
LOGO = "logo"
_FOLDER = Path(__file__).resolve().parent / "static"
_NAMES = frozenset(path.name for path in _FOLDER.iterdir())
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


_HEADERS = {"Cache-Control": "public, max-age=300", "Content-Security-Policy": "default-src 'none'"}


@lru_cache(maxsize=32)
def _read(path: Path) -> ServedFile | None:
    if not path.is_file() or path.suffix not in _TYPES:
        return None
    return make(path.read_bytes(), _TYPES[path.suffix])


async def static(request: Request) -> Response:
    """`GET /static/{name}`: return a file of the folder `static`, the brand's style sheet, or the logo."""
    name = request.path_params["name"]
    settings = service_of(request).settings
    if name == BRAND_CSS:
        content = f":root{{--brand:{settings.brand_accent}}}".encode()
        found: ServedFile | None = make(content, _TYPES[".css"])
    elif name == LOGO:
        found = _read(Path(settings.brand_logo)) if settings.brand_logo else None
    else:
        found = _read(_FOLDER / name) if name in _NAMES else None
    if found is None:
        raise Refused(Code.NOT_FOUND, "There is no such file.")
    return serve(request, found, _HEADERS)
