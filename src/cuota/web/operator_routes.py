"""The routes of the operator's dashboard: a part of the table in web/app.py.

Operators have other tables, cookies and roles than the people of merchants (core/operator/role.py).
"""

from __future__ import annotations

from cuota.web.onboarding_routes import onboarding_routes
from cuota.web.pages import operator
from cuota.web.pages.operator.visit import OPERATOR_ERRORS
from cuota.web.passkey_routes import passkey_routes
from cuota.web.server.route import Area, Route

OPERATOR = Area(errors=OPERATOR_ERRORS, party="operator", group="Operator's dashboard")
ONBOARDING = "/operator/merchants/{merchant_id}/onboarding"
OPERATOR_ROUTES = (
    Route("GET", "/operator", operator.home.home, OPERATOR),
    Route("GET", "/operator/sign-in", operator.enter.ENTRANCE.show_sign_in, OPERATOR),
    Route("POST", "/operator/sign-in", operator.enter.ENTRANCE.ask_link, OPERATOR),
    Route("GET", "/operator/enter/{link_id}/{code}", operator.enter.ENTRANCE.show_link, OPERATOR),
    Route("POST", "/operator/enter/{link_id}/{code}", operator.enter.ENTRANCE.use_link, OPERATOR),
    Route("GET", "/operator/code", operator.enter.ENTRANCE.show_code, OPERATOR),
    Route("POST", "/operator/code", operator.enter.ENTRANCE.check_code, OPERATOR),
    Route("POST", "/operator/leave", operator.enter.ENTRANCE.leave, OPERATOR),
    Route("GET", "/operator/provider", operator.provider.start, OPERATOR),
    Route("GET", "/operator/provider/return", operator.provider.returned, OPERATOR),
    Route("GET", "/operator/provider/confirm", operator.provider.confirm, OPERATOR),
    *passkey_routes("/operator", operator.enter.BY_PASSKEY, operator.passkeys, OPERATOR),
    Route("GET", "/operator/orders", operator.orders.orders, OPERATOR),
    Route("GET", "/operator/orders/letters/{decision_id}", operator.orders.letter, OPERATOR),
    Route("GET", "/operator/orders/{order_id}", operator.orders.order, OPERATOR),
    Route("GET", "/operator/orders/{order_id}/hardship", operator.hardship.hardship, OPERATOR),
    Route("POST", "/operator/orders/{order_id}/hardship", operator.hardship.change, OPERATOR),
    Route("GET", "/operator/merchants", operator.merchant.listing.listed, OPERATOR),
    Route("GET", "/operator/merchants/new", operator.new_merchant.ask, OPERATOR),
    Route("POST", "/operator/merchants", operator.new_merchant.add, OPERATOR),
    Route("GET", "/operator/merchants/{merchant_id}/owner", operator.new_merchant.ask_owner, OPERATOR),
    Route("POST", "/operator/merchants/{merchant_id}/owner", operator.new_merchant.invite_owner, OPERATOR),
    *onboarding_routes(ONBOARDING, operator.merchant.onboarding, OPERATOR),
    Route("GET", f"{ONBOARDING}/items/{{item}}", operator.merchant.items.item, OPERATOR),
    Route("POST", f"{ONBOARDING}/items/{{item}}", operator.merchant.items.decide, OPERATOR),
    Route("POST", f"{ONBOARDING}/reveal", operator.merchant.items.reveal, OPERATOR),
    Route("POST", f"{ONBOARDING}/screening", operator.merchant.findings.screen_again, OPERATOR),
    Route("GET", f"{ONBOARDING}/findings/{{finding_id}}", operator.merchant.findings.finding, OPERATOR),
    Route("POST", f"{ONBOARDING}/findings/{{finding_id}}", operator.merchant.findings.decide, OPERATOR),
    Route("GET", "/operator/merchants/{merchant_id}/suspension", operator.merchant.suspension.ask, OPERATOR),
    Route(
        "POST", "/operator/merchants/{merchant_id}/suspension", operator.merchant.suspension.change, OPERATOR
    ),
    Route("GET", "/operator/merchants/{merchant_id}", operator.merchants.merchant, OPERATOR),
    Route("POST", "/operator/merchants/{merchant_id}", operator.merchants.change, OPERATOR),
    Route("GET", "/operator/consumers", operator.consumers.ask, OPERATOR),
    Route("POST", "/operator/consumers", operator.consumers.find, OPERATOR),
    Route("GET", "/operator/consumers/{consumer_id}", operator.consumers.consumer, OPERATOR),
    Route("POST", "/operator/consumers/{consumer_id}/reveal", operator.consumers.reveal, OPERATOR),
    Route("POST", "/operator/consumers/{consumer_id}/block", operator.blocks.change, OPERATOR),
    Route("GET", "/operator/consumers/{consumer_id}/messages", operator.messages.messages, OPERATOR),
    Route("POST", "/operator/consumers/{consumer_id}/messages", operator.messages.reveal, OPERATOR),
    Route("POST", "/operator/consumers/{consumer_id}/privacy", operator.consumers.privacy, OPERATOR),
    Route("GET", "/operator/disputes", operator.disputes.disputes, OPERATOR),
    Route("GET", "/operator/disputes/{dispute_id}", operator.disputes.dispute, OPERATOR),
    Route("POST", "/operator/disputes/{dispute_id}", operator.disputes.decide, OPERATOR),
    Route(
        "GET",
        "/operator/disputes/{dispute_id}/files/{evidence_id}/{number}",
        operator.disputes.file,
        OPERATOR,
    ),
    Route("GET", "/operator/risk", operator.risk.risk, OPERATOR),
    Route("POST", "/operator/risk", operator.risk.try_limits, OPERATOR),
    Route("GET", "/operator/risk/reviews", operator.reviews.reviews, OPERATOR),
    Route("GET", "/operator/risk/reviews/{order_id}", operator.reviews.review, OPERATOR),
    Route("POST", "/operator/risk/reviews/{order_id}", operator.reviews.answer, OPERATOR),
    Route("GET", "/operator/risk/velocity", operator.velocity.velocity, OPERATOR),
    Route("GET", "/operator/risk/policies", operator.policies.policies, OPERATOR),
    Route("POST", "/operator/risk/policies", operator.policies.try_policy, OPERATOR),
    Route("GET", "/operator/risk/policies/{version}", operator.policies.policy_text, OPERATOR),
    Route("GET", "/operator/payouts", operator.payouts.payouts, OPERATOR),
    Route("GET", "/operator/payouts/{merchant_id}/{payout_id}", operator.held_payout.payout, OPERATOR),
    Route("POST", "/operator/payouts/{merchant_id}/{payout_id}", operator.held_payout.release, OPERATOR),
    Route("GET", "/operator/books", operator.books.books, OPERATOR),
    Route("GET", "/operator/books/balance", operator.books.balance, OPERATOR),
    Route("GET", "/operator/books/losses", operator.losses.shown_losses, OPERATOR),
    Route("GET", "/operator/system", operator.system.system, OPERATOR),
    Route("GET", "/operator/sandbox", operator.sandbox.show, OPERATOR),
    Route("POST", "/operator/sandbox", operator.sandbox.change, OPERATOR),
    Route("GET", "/operator/sandbox/rewind", operator.sandbox.ask_rewind, OPERATOR),
    Route("GET", "/operator/me", operator.team.me, OPERATOR),
    Route("GET", "/operator/team", operator.team.team, OPERATOR),
    Route("POST", "/operator/team", operator.team.invite, OPERATOR),
    Route("GET", "/operator/team/{person_id}", operator.team.person, OPERATOR),
    Route("POST", "/operator/team/{person_id}", operator.team.change, OPERATOR),
    Route("POST", "/operator/team/{person_id}/sessions", operator.team.end_session, OPERATOR),
    Route("GET", "/operator/log", operator.log.log, OPERATOR),
)
