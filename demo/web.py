"""What every page needs: the visitor, a form that is really ours, the template, the headers."""

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

COOKIE = "alder_oak"  # cookies know no ports: the name keeps it apart from the provider's on one host
FORM_LIMIT = 16_384
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Shop:
    """What the handlers work with."""

    settings: ShopSettings
    store: Store
    payments: Payments
    processor: Processor


def shop_of(request: Request) -> Shop:
    """Find the shop that a request is for."""
    shop: Shop = request.app.state.shop
    return shop


def make_templates(settings: ShopSettings) -> Environment:
    """Templates that escape everything and refuse an unknown name."""
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
    """Print an ISO 8601 time as "Sat, Dec 5 at 2:07 PM UTC"."""
    try:
        when = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text
    return f"{when:%a, %b} {when.day} at {when.hour % 12 or 12}:{when:%M %p} UTC"


def visitor(request: Request) -> Visitor:
    """Return whose browser this is; a new one is met on its first page."""
    if not hasattr(request.state, "visitor"):
        request.state.visitor = shop_of(request).store.visitor(request.cookies.get(COOKIE, ""))
    known: Visitor = request.state.visitor
    return known


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page with the visitor's cart, notice and form token at hand."""
    shop, who = shop_of(request), visitor(request)
    templates: Environment = request.app.state.templates
    body = templates.get_template(template).render(
        csrf=who.csrf,
        path=request.url.path,
        cart=shop.store.cart(who.session),
        notice=shop.store.take_notice(who.session),
        **context,
    )
    response = HTMLResponse(body, status, headers={"Cache-Control": "no-store"})
    if request.cookies.get(COOKIE) != who.session:
        response.set_cookie(COOKIE, who.session, httponly=True, samesite="lax", secure=shop.settings.https)
    return response


def go(request: Request, url: str, tone: str = "", text: str = "") -> RedirectResponse:
    """Answer a form with another page, and perhaps a line to show there."""
    if text:
        shop_of(request).store.leave_notice(visitor(request).session, tone, text)
    return RedirectResponse(url, 303, headers={"Cache-Control": "no-store"})


async def form(request: Request) -> dict[str, str]:
    """Read a form, and refuse one that did not come from a page of ours."""
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
    """Middleware: the security headers of every answer."""

    def __init__(self, app: ASGIApp, settings: ShopSettings) -> None:
        self._app = app
        # form-action also names the provider: the checkout's form is answered by a redirect to it.
        policy = (
            f"default-src 'self'; form-action 'self' {settings.api_origin}; "
            "base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
        )
        if settings.signs:  # the provider's script, its calls, and its checkout in a modal
            theirs = settings.api_origin
            policy += f"; script-src 'self' {theirs}; connect-src 'self' {theirs}; frame-src {theirs}"
        self._headers = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)
