"""Builds the shop as one Starlette application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from . import backoffice, disputes, reconcile, storefront, webhooks, window
from .payments import Payments
from .processor import Processor
from .settings import ShopSettings
from .store import Store
from .web import HERE, SecurityHeaders, Shop, make_templates, page

_PROBLEMS = {
    400: ("We could not read that request", "Go back, reload the page, and try again."),
    401: (
        "The back office asks for a login",
        "The user name and password are in the terminal where the shop was started.",
    ),
    403: ("This page was open for too long", "For your safety, go back, reload the page, and try again."),
    404: ("We cannot find that page", "The address may be mistyped, or it belongs to another browser."),
    405: ("That does not work here", "Start again from the shop, please."),
    413: ("That form is too large", "The shop does not accept forms of this size."),
    500: ("Something broke on our side", "Your cart is kept. Please try again in a minute."),
}


def make_app(settings: ShopSettings, transport: httpx.AsyncBaseTransport | None = None) -> Starlette:
    """Build the shop. A test can pass a `transport` in place of the network."""
    shop = Shop(settings, Store(settings.data), Payments(settings, transport), Processor(settings, transport))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await shop.payments.close()
        await shop.processor.close()
        shop.store.close()

    app = Starlette(
        routes=[
            *storefront.routes,
            *window.routes,
            *backoffice.routes,
            *disputes.routes,
            *reconcile.routes,
            *webhooks.routes,
            Route("/health", _health),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        middleware=[Middleware(SecurityHeaders, settings=settings)],
        exception_handlers={HTTPException: _problem, 500: _problem},
        lifespan=lifespan,
    )
    app.state.shop = shop
    app.state.templates = make_templates(settings)
    return app


async def _health(_request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _problem(request: Request, error: Exception) -> Response:
    """Answer an error with a page that tells the visitor what to do."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    title, text = _PROBLEMS.get(status, _PROBLEMS[500])
    response = page(request, "problem.html", status=status, title=title, text=text)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
