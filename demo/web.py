"""The common parts of all pages: the visitor's session, forms with CSRF protection, templates, and security headers."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import money
from .payments import Payments
from .processor import Processor
from .settings import ShopSettings
from .store import Store, Visitor

# Cookies are shared by all ports of a host. This name must differ from the provider's cookies on the same host.
COOKIE = "alder_oak"
FORM_LIMIT = 16_384
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Shop:
    """The resources that the handlers use."""

    settings: ShopSettings
    store: Store
    payments: Payments
    processor: Processor


def shop_of(request: Request) -> Shop:
    """Return the shop's resources."""
    shop: Shop = request.app.state.shop
    return shop


def make_templates(settings: ShopSettings) -> Environment:
    """Make the template environment. Templates escape all values, and an unknown name raises an error."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "usd": money.show,
        "plain": money.to_json,
        "offer": money.offer,
        "in_four": money.in_four,
    }
    templates.filters |= {"zip": zip, "moment": _moment}
    templates.globals |= {"docs_url": f"{settings.api_url}/docs", "sdk": f"{settings.api_url}/v1/pay.js"}
    return templates


def _moment(text: str) -> str:
    """Format an ISO 8601 time as "Sat, Dec 5 at 2:07 PM UTC"."""
    try:
        when = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text
    return f"{when:%a, %b} {when.day} at {when.hour % 12 or 12}:{when:%M %p} UTC"


def visitor(request: Request) -> Visitor:
    """Return the visitor of this browser. A new browser gets a new visitor."""
    if not hasattr(request.state, "visitor"):
        request.state.visitor = shop_of(request).store.visitor(request.cookies.get(COOKIE, ""))
    found: Visitor = request.state.visitor
    return found


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page. Every template gets the visitor's cart, notice and CSRF token."""
    shop, person = shop_of(request), visitor(request)
    templates: Environment = request.app.state.templates
    body = templates.get_template(template).render(
        csrf=person.csrf,
        path=request.url.path,
        cart=shop.store.cart(person.session),
        notice=shop.store.take_notice(person.session),
        **context,
    )
    response = HTMLResponse(body, status, headers={"Cache-Control": "no-store"})
    if request.cookies.get(COOKIE) != person.session:
        response.set_cookie(COOKIE, person.session, httponly=True, samesite="lax", secure=shop.settings.https)
    return response


def go(request: Request, url: str, tone: str = "", text: str = "") -> RedirectResponse:
    """Answer a form with a redirect. `text` becomes the notice on the next page."""
    if text:
        shop_of(request).store.leave_notice(visitor(request).session, tone, text)
    return RedirectResponse(url, 303, headers={"Cache-Control": "no-store"})


async def form(request: Request) -> dict[str, str]:
    """Read a form. Raises 403 if it was not sent by a page of the shop in this browser, and 413 if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > FORM_LIMIT:
            raise HTTPException(413)
    fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if not hmac.compare_digest(fields.get("csrf", "").encode(), visitor(request).csrf.encode()):
        raise HTTPException(403)
    return fields


class SecurityHeaders:
    """Middleware that adds security headers to every answer."""

    def __init__(self, app: ASGIApp, settings: ShopSettings) -> None:
        self._app = app
        # form-action also names the provider, because the checkout's form is answered with a redirect to the provider.
        policy = (
            f"default-src 'self'; form-action 'self' {settings.api_origin}; "
            "base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
        )
        if settings.signs:  # allow the provider's script, its calls, and its checkout in a modal
            provider = settings.api_origin
            policy += f"; script-src 'self' {provider}; connect-src 'self' {provider}; frame-src {provider}"
        self._headers = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and add the headers to the answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)
