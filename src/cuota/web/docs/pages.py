"""The pages of the documentation: `/docs`, the API reference, and each guide."""

from __future__ import annotations

import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cuota.core.refusal import Code, Refused
from cuota.web.docs.contract import load_contract
from cuota.web.docs.guides import guide, listed
from cuota.web.docs.markdown import blocks, inline
from cuota.web.served import ServedFile, make, make_from_gzip, serve
from cuota.web.service import service_of

_HERE = Path(__file__).resolve().parent
_REFERENCE = _HERE / "reference"
_HTML = "text/html; charset=utf-8"
_REST = "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
CSP = f"default-src 'none'; script-src 'self'; style-src 'self'; {_REST}"
_PAGE = {"Content-Security-Policy": CSP, "Cache-Control": "public, max-age=300"}
_FILE = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "public, max-age=300"}


def reference_csp(nonce: str) -> str:
    """Return the content security policy of the API reference.

    The script of the reference adds style sheets with this nonce, and sets styles of elements. It may send requests to
    this origin only: for the OpenAPI document, and for "Test Request" in the sandbox.
    """
    styles = f"style-src-elem 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'"
    return f"default-src 'none'; script-src 'self'; {styles}; connect-src 'self'; {_REST}"


async def to_docs(request: Request) -> Response:
    """`GET /`: redirect to the documentation, for a person who opens the service's address in a browser."""
    del request
    return RedirectResponse("/docs", 303, _PAGE)


async def home(request: Request) -> Response:
    """`GET /docs`: show the first steps, all error codes, and the special inputs of the sandbox."""
    return serve(request, _home(service_of(request).settings.public_url), _PAGE)


async def guide_page(request: Request) -> Response:
    """`GET /docs/{name}`: show one guide."""
    page = _guide(request.path_params["name"], service_of(request).settings.public_url)
    if page is None:
        raise Refused(Code.NOT_FOUND, "There is no such guide. /docs lists them.")
    return serve(request, page, _PAGE)


async def reference(request: Request) -> Response:
    """`GET /docs/reference`: show all calls and webhooks. In the sandbox, a developer can try the calls."""
    settings = service_of(request).settings
    nonce = secrets.token_urlsafe(16)
    text = _template("reference.html").render(
        **_around("reference", settings.public_url),
        nonce=nonce,
        sandbox=settings.sandbox,
        audience=settings.audience,
    )
    headers = {"Content-Security-Policy": reference_csp(nonce), "Cache-Control": "no-cache"}
    return Response(text, headers={**headers, "Content-Type": _HTML})


async def reference_file(request: Request) -> Response:
    """`GET /docs/reference/{path}`: return one script of the API reference."""
    found = _reference_files().get(request.path_params["path"])
    if found is None:
        raise Refused(Code.NOT_FOUND, "There is no such file.")
    return serve(request, _script(found), _FILE)


@lru_cache(maxsize=1)
def _reference_files() -> dict[str, Path]:
    return {str(path.relative_to(_REFERENCE).with_suffix("")): path for path in _REFERENCE.rglob("*.js.gz")}


@lru_cache(maxsize=64)
def _script(path: Path) -> ServedFile:
    return make_from_gzip(path.read_bytes(), "text/javascript; charset=utf-8")


@lru_cache(maxsize=8)
def _home(base_url: str) -> ServedFile:
    contract: dict[str, Any] = load_contract(base_url)
    schemas = contract["components"]["schemas"]
    text = _template("home.html").render(
        **_around("home", base_url),
        description=Markup(blocks(contract["info"]["description"])),  # noqa: S704 - our own text
        codes=schemas["ErrorCode"]["x-codes"],
        token_codes=schemas["TokenErrorCode"]["x-codes"],
        sandbox=contract["x-sandbox"],
    )
    return make(text.encode(), _HTML)


@lru_cache(maxsize=64)
def _guide(name: str, base_url: str) -> ServedFile | None:
    page = guide(name, base_url)
    if page is None:
        return None
    text = _template("guide.html").render(
        **_around(name, base_url),
        title=page.title,
        html=Markup(page.html),  # noqa: S704 - our own text, rendered without raw HTML
        headings=[heading for heading in page.headings if heading.level == 2],
    )
    return make(text.encode(), _HTML)


def _around(name: str, base_url: str) -> dict[str, object]:
    """Return the template values that every page of the documentation needs."""
    return {"here": name, "guides": listed(), "base_url": base_url, "info": load_contract(base_url)["info"]}


@lru_cache(maxsize=8)
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = lambda text: Markup(inline(text))  # noqa: S704 - our own text
    return environment.get_template(name)
