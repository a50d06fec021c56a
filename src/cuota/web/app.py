"""The application: every route in one table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.keys import Keys
from cuota.web.api import card_network, endpoints, events, gateway, health, sdk_checkout, smi, texts, token
from cuota.web.api.capture import capture
from cuota.web.api.configuration import configuration
from cuota.web.api.order import order_collection, order_item
from cuota.web.api.order_list import orders
from cuota.web.api.refund import refund
from cuota.web.api.void import void
from cuota.web.docs import pages as docs
from cuota.web.docs.contract import openapi_json
from cuota.web.pages import account, assets, inbox, sdk_script
from cuota.web.pages.checkout import entry, steps, window
from cuota.web.server import edge
from cuota.web.server.metrics import metrics
from cuota.web.server.probe import Probe
from cuota.web.service import Service

Handler = Callable[[Request], Awaitable[Response]]

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", "/oauth/token", token.token),
    ("GET", "/configuration", configuration),
    ("GET POST", "/order", order_collection),
    ("GET", "/order/{order_id}", order_item),
    ("POST", "/order/{order_id}/capture", capture),
    ("POST", "/order/{order_id}/void", void),
    ("POST", "/order/{order_id}/refund", refund),
    ("GET", "/orders", orders),
    ("GET POST", "/orders/authorize", gateway.authorize),
    ("POST", "/checkouts", smi.checkout_collection),
    ("GET", "/checkouts/{checkout_id}", smi.checkout_item),
    ("GET", "/events", events.event_list),
    ("POST", "/events/replay", events.replay_range),
    ("GET", "/events/{event_id}", events.event_item),
    ("GET", "/events/{event_id}/deliveries", events.event_deliveries),
    ("POST", "/events/{event_id}/replay", events.event_replay),
    ("GET POST", "/webhook-endpoints", endpoints.endpoint_collection),
    ("GET PATCH DELETE", "/webhook-endpoints/{endpoint_id}", endpoints.endpoint_item),
    ("POST", "/webhook-endpoints/{endpoint_id}/rotate-secret", endpoints.endpoint_rotate),
    ("POST", "/webhook-endpoints/{endpoint_id}/test", endpoints.endpoint_test),
    ("POST", "/webhook-endpoints/{endpoint_id}/replay", endpoints.endpoint_replay),
    ("GET", "/.well-known/jwks.json", token.jwks),
    ("GET", "/.well-known/oauth-authorization-server", token.metadata),
    ("GET", "/health/live", health.live),
    ("GET", "/health/ready", health.ready),
    ("GET", "/metrics", metrics),
    ("GET", "/", docs.to_docs),
    ("GET", "/openapi.json", openapi_json),
    ("GET", "/docs", docs.home),
    ("GET", "/docs/reference", docs.reference),
    ("GET", "/docs/reference/{path:path}", docs.reference_file),
    ("GET", "/docs/{name}", docs.guide_page),
    ("GET", "/static/{name}", assets.static),
    ("POST", "/sdk/v1/checkouts", sdk_checkout.start),
    ("OPTIONS", "/sdk/v1/checkouts", sdk_checkout.preflight),
    ("POST", "/sdk/v1/checkouts/leave", sdk_checkout.leave),
    ("OPTIONS", "/sdk/v1/checkouts/leave", sdk_checkout.preflight),
    ("GET", "/sdk/v1/window", window.window),
    ("GET", "/v1/pay.js", sdk_script.pay_js),
    ("GET", "/v1/pay-{digest}.js", sdk_script.pinned),
    ("GET", "/v1/pay.d.ts", sdk_script.types),
    ("GET", "/v1/inspect.js", sdk_script.inspector),
    ("POST", "/texts", texts.texts),
    ("GET", "/sandbox/inbox", inbox.inbox),
    ("POST", "/sandbox/inbox", inbox.answer),
    ("POST", "/sandbox/cards/authorize", card_network.authorize),
    ("POST", "/sandbox/cards/authorizations/{authorization_id}/capture", card_network.capture),
    ("POST", "/sandbox/cards/authorizations/{authorization_id}/reverse", card_network.reverse),
    ("POST", "/sandbox/cards/authorizations/{authorization_id}/refund", card_network.refund),
    ("GET", "/account", account.enter.home),
    ("POST", "/account/phone", account.enter.phone),
    ("GET", "/account/code", account.enter.show_code),
    ("POST", "/account/code", account.enter.code),
    ("POST", "/account/resend", account.enter.resend),
    ("POST", "/account/leave", account.enter.leave),
    ("POST", "/account/forget", account.plans.forget),
    ("GET", "/account/{step}", account.enter.elsewhere),
    ("GET", "/account/plans/{merchant_id}/{order_id}", account.plans.plan),
    ("GET", "/account/plans/{merchant_id}/{order_id}/pay", account.pay.show),
    ("POST", "/account/plans/{merchant_id}/{order_id}/pay", account.pay.pay),
    ("GET", "/account/plans/{merchant_id}/{order_id}/card", account.card.show),
    ("POST", "/account/plans/{merchant_id}/{order_id}/card", account.card.change),
    ("GET", "/account/plans/{merchant_id}/{order_id}/agreement", account.plans.agreement),
    ("GET", "/account/plans/{merchant_id}/{order_id}/receipts/{charge_id}", account.plans.receipt),
    ("GET", "/checkout/{merchant_id}", entry.enter),
    ("GET", "/checkout/{merchant_id}/{order_id}", steps.show),
    ("POST", "/checkout/{merchant_id}/{order_id}/again", steps.again),
    ("POST", "/checkout/{merchant_id}/{order_id}/forget", steps.forget),
    ("POST", "/checkout/{merchant_id}/{order_id}/phone", steps.phone),
    ("POST", "/checkout/{merchant_id}/{order_id}/code", steps.code),
    ("POST", "/checkout/{merchant_id}/{order_id}/resend", steps.resend),
    ("POST", "/checkout/{merchant_id}/{order_id}/details", steps.details),
    ("POST", "/checkout/{merchant_id}/{order_id}/shipping", steps.shipping),
    ("POST", "/checkout/{merchant_id}/{order_id}/pay", steps.pay),
    ("POST", "/checkout/{merchant_id}/{order_id}/leave", steps.leave),
    ("GET", "/checkout/{merchant_id}/{order_id}/{step}", steps.elsewhere),
)


class _Endpoint:
    """One route as an ASGI application: what is raised in it, and what it answers, goes straight to the edge."""

    def __init__(self, path: str, endpoint: Handler) -> None:
        self._path = path
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route_name"] = self._path
        response = await self._endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


# What a port for metrics and health alone answers.
_WATCHED = {"/health/live", "/health/ready", "/metrics"}


def _router(paths: Callable[[str], bool]) -> Router:
    routes = [
        Route(path, _Endpoint(path, endpoint), methods=methods.split())
        for methods, path, endpoint in ROUTES
        if paths(path)
    ]
    return Router(routes, redirect_slashes=False)


def make_app(context: Context) -> edge.Edge:
    """Make the application of one process. The caller opens and closes what the context holds."""
    apart = context.settings.metrics_listen is not None
    keys = Keys(context)
    service = Service(context, keys, Callers(context, keys), Probe(context.pool))
    return edge.Edge(_router(lambda path: not (apart and path == "/metrics")), service)


def make_watched(app: edge.Edge) -> edge.Edge:
    """The same process's metrics and health alone, for a port of their own."""
    return edge.Edge(_router(_WATCHED.__contains__), app.service)
