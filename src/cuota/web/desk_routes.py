"""The routes of the merchant's dashboard: a part of the table in web/app.py. A person's role decides (core/desk/role.py)."""

from __future__ import annotations

from cuota.web.onboarding_routes import onboarding_routes
from cuota.web.pages import desk
from cuota.web.pages.desk.visit import DESK_ERRORS
from cuota.web.passkey_routes import passkey_routes
from cuota.web.server.route import Area, Route

DESK = Area(errors=DESK_ERRORS, party="desk", group="Merchants' dashboard")
DESK_ORDER = "/desk/orders/{order_id}"
DESK_ROUTES = (
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
    Route("GET", "/desk/payouts/bank", desk.bank.show, DESK),
    Route("POST", "/desk/payouts/bank", desk.bank.change, DESK),
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
    Route("POST", "/desk/parked", desk.webhooks.send_parked, DESK),
    Route("POST", "/desk/webhooks/{event_id}", desk.webhooks.send_again, DESK),
    Route("POST", "/desk/endpoints", desk.endpoints.add, DESK),
    Route("GET", "/desk/endpoints/{endpoint_id}", desk.endpoints.endpoint, DESK),
    Route("POST", "/desk/endpoints/{endpoint_id}", desk.endpoints.change, DESK),
    Route("GET", "/desk/approvals", desk.approvals.listed, DESK),
    Route("GET", "/desk/approvals/{approval_id}", desk.approvals.approval, DESK),
    Route("POST", "/desk/approvals/{approval_id}", desk.approvals.decide, DESK),
    Route("GET", "/desk/requests", desk.requests.listed, DESK),
    Route("GET", "/desk/requests/{request_id}", desk.requests.one, DESK),
    Route("GET", "/desk/developers", desk.developers.developers, DESK),
    Route("POST", "/desk/developers", desk.developers.change, DESK),
    Route("POST", "/desk/origins", desk.origins.change, DESK),
    Route("GET", "/desk/settings", desk.settings.show, DESK),
    Route("POST", "/desk/settings", desk.settings.change, DESK),
    Route("POST", "/desk/settings/logo", desk.settings.change_logo, DESK),
    *onboarding_routes("/desk/onboarding", desk.own_onboarding, DESK),
    Route("GET", "/desk/me", desk.team.me, DESK),
    Route("GET", "/desk/team", desk.team.team, DESK),
    Route("POST", "/desk/team", desk.team.invite, DESK),
    Route("GET", "/desk/team/{person_id}", desk.team.person, DESK),
    Route("POST", "/desk/team/{person_id}", desk.team.change, DESK),
    Route("POST", "/desk/team/{person_id}/sessions", desk.team.end_session, DESK),
    Route("GET", "/desk/sandbox", desk.sandbox.show, DESK),
    Route("POST", "/desk/sandbox", desk.sandbox.change, DESK),
    Route("GET", "/desk/sandbox/rewind", desk.sandbox.ask_rewind, DESK),
    Route("GET", "/desk/audit", desk.audit.audit, DESK),
)
