"""The table of all routes, and the application that serves them.

Each row says everything about one route (`web/server/route.py` explains the fields). To add a page, add a row.
"""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.keys import Keys
from cuota.web.api import (
    balance,
    card_events,
    card_network,
    dispute_answer,
    disputes,
    endpoints,
    events,
    gateway,
    health,
    payouts,
    sdk_checkout,
    smi,
    texts,
    token,
)
from cuota.web.api.capture import capture
from cuota.web.api.configuration import configuration
from cuota.web.api.order import order_collection, order_item
from cuota.web.api.order_list import orders
from cuota.web.api.refund import refund
from cuota.web.api.void import void
from cuota.web.docs import pages as docs
from cuota.web.docs.contract import openapi_json
from cuota.web.onboarding_routes import onboarding_routes
from cuota.web.operator_routes import OPERATOR_ROUTES
from cuota.web.pages import account, assets, desk, inbox, sdk_script
from cuota.web.pages.checkout import entry, steps, window
from cuota.web.pages.desk.visit import DESK_ERRORS
from cuota.web.pages.processor import cards as processor_cards
from cuota.web.pages.processor import confirm as processor_confirm
from cuota.web.pages.render import ACCOUNT_ERRORS, BANK_ERRORS, CHECKOUT_ERRORS
from cuota.web.passkey_routes import passkey_routes
from cuota.web.probe import Probe
from cuota.web.server import edge
from cuota.web.server.metrics import metrics
from cuota.web.server.route import Area, Port, Route
from cuota.web.server.routes import Routes
from cuota.web.service import ClockMover, Service

# The areas. A path that does not exist is refused in the error form of the area that has the same first path segment.
API = Area(needs_token=True, documented=True)
OPEN = Area(documented=True)
OAUTH = Area(errors=token.OAUTH_ERRORS, party="oauth", documented=True)
GATEWAY = Area(errors=gateway.GATEWAY_ERRORS, party="orders", documented=True)
KEYS = Area(party=".well-known", documented=True)
SDK = Area(party="sdk", documented=True, headers=sdk_checkout.READABLE)
SDK_WINDOW = Area(party="sdk", documented=True)
DOCS, STATIC, SCRIPTS = Area(party="docs"), Area(party="static"), Area(party="v1")
TEXTS, SANDBOX = Area(party="texts"), Area(party="sandbox")
# Card processors report events here.
RAILS = Area(party="rails")
# The simulated card processor: a path for its script, and the simulated bank's pages.
PROCESSOR = Area(party="sandbox-processor")
BANK = Area(errors=BANK_ERRORS, party="sandbox-processor")
# The path of a consumer's plan; the pages of its disputes are below it.
PLAN = "/account/plans/{merchant_id}/{order_id}"
# The merchant's dashboard. A person's role decides (core/desk/role.py).
DESK = Area(errors=DESK_ERRORS, party="desk")
DESK_ORDER = "/desk/orders/{order_id}"
ACCOUNT = Area(errors=ACCOUNT_ERRORS, party="account")
CHECKOUT = Area(errors=CHECKOUT_ERRORS, party="checkout", consumers=True)

ROUTES = (
    Route("POST", "/oauth/token", token.token, OAUTH, by_client=True, judges_authorization=True),
    Route("GET", "/configuration", configuration, API),
    Route("GET POST", "/order", order_collection, API, creates=("POST",)),
    Route("GET", "/order/{order_id}", order_item, API),
    Route("POST", "/order/{order_id}/capture", capture, API),
    Route("POST", "/order/{order_id}/void", void, API),
    Route("POST", "/order/{order_id}/refund", refund, API),
    Route("GET", "/orders", orders, API),
    Route("GET POST", "/orders/authorize", gateway.authorize, GATEWAY, creates=("GET", "POST")),
    Route("POST", "/checkouts", smi.checkout_collection, API, creates=("POST",)),
    Route("GET", "/checkouts/{checkout_id}", smi.checkout_item, API),
    Route("GET", "/events", events.event_list, API),
    Route("POST", "/events/replay", events.replay_range, API),
    Route("GET", "/events/{event_id}", events.event_item, API),
    Route("GET", "/events/{event_id}/deliveries", events.event_deliveries, API),
    Route("POST", "/events/{event_id}/replay", events.event_replay, API),
    Route("GET POST", "/webhook-endpoints", endpoints.endpoint_collection, API),
    Route("GET PATCH DELETE", "/webhook-endpoints/{endpoint_id}", endpoints.endpoint_item, API),
    Route("POST", "/webhook-endpoints/{endpoint_id}/rotate-secret", endpoints.endpoint_rotate, API),
    Route("POST", "/webhook-endpoints/{endpoint_id}/test", endpoints.endpoint_test, API),
    Route("POST", "/webhook-endpoints/{endpoint_id}/replay", endpoints.endpoint_replay, API),
    Route("GET", "/payouts", payouts.payouts, API),
    Route("GET", "/payouts/{payout_id}", payouts.payout, API),
    Route("GET", "/payouts/{payout_id}/lines", payouts.payout_lines, API),
    Route("GET", "/disputes", disputes.disputes, API),
    Route("GET", "/disputes/{dispute_id}", disputes.dispute, API),
    Route("GET", "/disputes/{dispute_id}/files/{file_id}", disputes.dispute_file, API),
    Route("POST", "/disputes/{dispute_id}/accept", dispute_answer.accept, API),
    Route("POST", "/disputes/{dispute_id}/evidence", dispute_answer.evidence, API),
    Route("POST", "/disputes/{dispute_id}/appeal", dispute_answer.appeal, API),
    Route("GET", "/balance", balance.balance, API),
    Route("GET", "/terms", balance.terms, API),
    Route("GET", "/.well-known/jwks.json", token.jwks, KEYS),
    Route("GET", "/.well-known/oauth-authorization-server", token.metadata, KEYS),
    Route("GET", "/health/live", health.live, OPEN, always=True, probe=True, port=Port.BOTH),
    Route("GET", "/health/ready", health.ready, OPEN, always=True, probe=True, port=Port.BOTH),
    Route("GET", "/metrics", metrics, OPEN, always=True, port=Port.METRICS),
    Route("GET", "/", docs.to_docs, DOCS),
    Route("GET", "/openapi.json", openapi_json, OPEN),
    Route("GET", "/docs", docs.home, DOCS),
    Route("GET", "/docs/reference", docs.reference, DOCS),
    Route("GET", "/docs/reference/{path:path}", docs.reference_file, DOCS),
    Route("GET", "/docs/{name}", docs.guide_page, DOCS),
    Route("GET", "/static/{name}", assets.static, STATIC),
    Route("POST", "/sdk/v1/checkouts", sdk_checkout.start, SDK, creates=("POST",)),
    Route("OPTIONS", "/sdk/v1/checkouts", sdk_checkout.preflight, SDK, always=True),
    Route("POST", "/sdk/v1/checkouts/leave", sdk_checkout.leave, SDK),
    Route("OPTIONS", "/sdk/v1/checkouts/leave", sdk_checkout.preflight, SDK, always=True),
    Route("GET", "/sdk/v1/window", window.window, SDK_WINDOW, always=True),
    Route("GET", "/v1/pay.js", sdk_script.pay_js, SCRIPTS),
    Route("GET", "/v1/pay-{digest}.js", sdk_script.pinned, SCRIPTS),
    Route("GET", "/v1/pay.d.ts", sdk_script.types, SCRIPTS),
    Route("GET", "/v1/inspect.js", sdk_script.inspector, SCRIPTS),
    Route("POST", "/texts", texts.texts, TEXTS),
    Route("POST", "/rails/card/events", card_events.receive, RAILS),
    Route("GET", "/sandbox/inbox", inbox.inbox, SANDBOX),
    Route("POST", "/sandbox/inbox", inbox.answer, SANDBOX),
    Route("POST", "/sandbox/cards/authorize", card_network.authorize, SANDBOX),
    Route("POST", "/sandbox/cards/authorizations/{authorization_id}/capture", card_network.capture, SANDBOX),
    Route("POST", "/sandbox/cards/authorizations/{authorization_id}/reverse", card_network.reverse, SANDBOX),
    Route("POST", "/sandbox/cards/authorizations/{authorization_id}/refund", card_network.refund, SANDBOX),
    Route("POST", "/sandbox-processor/cards", processor_cards.cards, PROCESSOR),
    Route("GET", "/sandbox-processor/confirm/{key}", processor_confirm.show, BANK),
    Route("POST", "/sandbox-processor/confirm/{key}", processor_confirm.answer, BANK),
    Route("GET", "/account", account.enter.home, ACCOUNT),
    Route("POST", "/account/phone", account.enter.phone, ACCOUNT),
    Route("GET", "/account/code", account.enter.show_code, ACCOUNT),
    Route("POST", "/account/code", account.enter.code, ACCOUNT),
    Route("POST", "/account/resend", account.enter.resend, ACCOUNT),
    Route("POST", "/account/leave", account.enter.leave, ACCOUNT),
    Route("POST", "/account/forget", account.plans.forget, ACCOUNT),
    Route("GET", "/account/{step}", account.enter.elsewhere, ACCOUNT),
    Route("GET", "/account/plans/{merchant_id}/{order_id}", account.plans.plan, ACCOUNT),
    Route("GET", "/account/plans/{merchant_id}/{order_id}/pay", account.pay.show, ACCOUNT),
    Route("POST", "/account/plans/{merchant_id}/{order_id}/pay", account.pay.pay, ACCOUNT),
    Route("GET", "/account/plans/{merchant_id}/{order_id}/card", account.card.show, ACCOUNT),
    Route("POST", "/account/plans/{merchant_id}/{order_id}/card", account.card.change, ACCOUNT),
    Route(
        "POST", "/account/plans/{merchant_id}/{order_id}/another-card", account.charging.another_card, ACCOUNT
    ),
    Route("GET", f"{PLAN}/dispute", account.disputes.new, ACCOUNT),
    Route("POST", f"{PLAN}/dispute", account.disputes.create, ACCOUNT),
    Route("GET", f"{PLAN}/disputes/{{dispute_id}}", account.disputes.show, ACCOUNT),
    Route("POST", f"{PLAN}/disputes/{{dispute_id}}/add", account.disputes.add, ACCOUNT),
    Route("POST", f"{PLAN}/disputes/{{dispute_id}}/appeal", account.disputes.appeal, ACCOUNT),
    Route("POST", f"{PLAN}/disputes/{{dispute_id}}/withdraw", account.disputes.withdraw, ACCOUNT),
    Route(
        "GET",
        f"{PLAN}/disputes/{{dispute_id}}/files/{{evidence_id}}/{{number}}",
        account.disputes.file,
        ACCOUNT,
    ),
    Route("GET", f"{PLAN}/return", account.returns.show, ACCOUNT),
    Route("POST", f"{PLAN}/return", account.returns.notice, ACCOUNT),
    Route("GET", "/account/plans/{merchant_id}/{order_id}/agreement", account.plans.agreement, ACCOUNT),
    Route(
        "GET", "/account/plans/{merchant_id}/{order_id}/receipts/{charge_id}", account.plans.receipt, ACCOUNT
    ),
    Route("GET", "/desk", desk.home.home, DESK),
    Route("GET", "/desk/sign-in", desk.enter.ENTRANCE.show_sign_in, DESK),
    Route("POST", "/desk/sign-in", desk.enter.ENTRANCE.ask_link, DESK),
    Route("GET", "/desk/enter/{merchant_id}/{link_id}/{code}", desk.enter.ENTRANCE.show_link, DESK),
    Route("POST", "/desk/enter/{merchant_id}/{link_id}/{code}", desk.enter.ENTRANCE.use_link, DESK),
    Route("GET", "/desk/code", desk.enter.ENTRANCE.show_code, DESK),
    Route("POST", "/desk/code", desk.enter.ENTRANCE.check_code, DESK),
    Route("POST", "/desk/leave", desk.enter.ENTRANCE.leave, DESK),
    *passkey_routes("/desk", desk.enter.BY_PASSKEY, desk.passkeys, DESK),
    Route("GET", "/desk/orders", desk.orders.orders, DESK),
    Route("GET", "/desk/orders/export", desk.export.show, DESK),
    Route("POST", "/desk/orders/export", desk.export.export, DESK),
    Route("GET", DESK_ORDER, desk.orders.order, DESK),
    Route("GET", f"{DESK_ORDER}/capture", desk.move.show_capture, DESK),
    Route("POST", f"{DESK_ORDER}/capture", desk.move.do_capture, DESK),
    Route("GET", f"{DESK_ORDER}/void", desk.move.show_void, DESK),
    Route("POST", f"{DESK_ORDER}/void", desk.move.do_void, DESK),
    Route("GET", f"{DESK_ORDER}/refund", desk.move.show_refund, DESK),
    Route("POST", f"{DESK_ORDER}/refund", desk.move.do_refund, DESK),
    Route("GET", "/desk/payouts", desk.payouts.payouts, DESK),
    Route("GET", "/desk/payouts/export", desk.payouts.export_payouts, DESK),
    Route("GET", "/desk/payouts/{payout_id}", desk.payouts.payout, DESK),
    Route("GET", "/desk/payouts/{payout_id}/export", desk.payouts.export_lines, DESK),
    Route("GET", "/desk/disputes", desk.disputes.disputes, DESK),
    Route("GET", "/desk/disputes/{dispute_id}", desk.disputes.dispute, DESK),
    Route("POST", "/desk/disputes/{dispute_id}/accept", desk.disputes.accept, DESK),
    Route("POST", "/desk/disputes/{dispute_id}/evidence", desk.disputes.evidence, DESK),
    Route("POST", "/desk/disputes/{dispute_id}/appeal", desk.disputes.appeal, DESK),
    Route("GET", "/desk/disputes/{dispute_id}/files/{evidence_id}/{number}", desk.disputes.file, DESK),
    Route("GET", "/desk/webhooks", desk.webhooks.show, DESK),
    Route("GET", "/desk/webhooks/{event_id}", desk.webhooks.event, DESK),
    Route("POST", "/desk/webhooks/{event_id}", desk.webhooks.send_again, DESK),
    Route("GET", "/desk/approvals", desk.approvals.listed, DESK),
    Route("GET", "/desk/approvals/{approval_id}", desk.approvals.approval, DESK),
    Route("POST", "/desk/approvals/{approval_id}", desk.approvals.decide, DESK),
    Route("GET", "/desk/developers", desk.developers.developers, DESK),
    Route("POST", "/desk/developers", desk.developers.change, DESK),
    *onboarding_routes("/desk/onboarding", desk.own_onboarding, DESK),
    Route("GET", "/desk/me", desk.team.me, DESK),
    Route("GET", "/desk/team", desk.team.team, DESK),
    Route("POST", "/desk/team", desk.team.invite, DESK),
    Route("GET", "/desk/team/{person_id}", desk.team.person, DESK),
    Route("POST", "/desk/team/{person_id}", desk.team.change, DESK),
    Route("POST", "/desk/team/{person_id}/sessions", desk.team.end_session, DESK),
    Route("GET", "/desk/sandbox", desk.sandbox.show, DESK),
    Route("POST", "/desk/sandbox", desk.sandbox.advance, DESK),
    Route("GET", "/desk/audit", desk.audit.audit, DESK),
    *OPERATOR_ROUTES,
    Route("GET", "/checkout/{merchant_id}", entry.enter, CHECKOUT),
    Route("GET", "/checkout/{merchant_id}/{order_id}", steps.show, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/again", steps.again, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/forget", steps.forget, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/phone", steps.phone, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/code", steps.code, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/resend", steps.resend, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/details", steps.details, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/shipping", steps.shipping, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/pay", steps.pay, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/another-card", steps.another_card, CHECKOUT),
    Route("POST", "/checkout/{merchant_id}/{order_id}/leave", steps.leave, CHECKOUT),
    Route("GET", "/checkout/{merchant_id}/{order_id}/{step}", steps.elsewhere, CHECKOUT),
)


def make_app(context: Context, mover: ClockMover | None = None) -> edge.Edge:
    """Make the application of one process. The caller opens and closes the resources in the context.

    `mover` moves the sandbox's clock for the dashboard.
    """
    metrics_apart = context.settings.metrics_listen is not None
    keys = Keys(context)
    service = Service(context, keys, Callers(context, keys), Probe(context.pool), mover)
    return edge.Edge(
        Routes(row for row in ROUTES if not (metrics_apart and row.port is Port.METRICS)), service
    )


def make_watched(app: edge.Edge) -> edge.Edge:
    """Make the application for the separate metrics port of the same process. It serves only metrics and health."""
    return edge.Edge(Routes(row for row in ROUTES if row.port is not Port.PUBLIC), app.service)
