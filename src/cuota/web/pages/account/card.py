"""The page on which a consumer replaces the card of a plan. The form has the processor's token of the card."""

from __future__ import annotations

import re
from datetime import date

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.card import BadCard
from cuota.core.installment import owed
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.afterwards import afterwards
from cuota.flows.checkout.allow_card import CHARGED_BACK, OTHER_CARD
from cuota.flows.checkout.days import local_day
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context
from cuota.flows.plan import manage_plan
from cuota.flows.plan.limit_asks import Limited
from cuota.flows.plan.manage_plan import change_card, find_plan, overdue
from cuota.web.pages.account.charging import GAVE_UP
from cuota.web.pages.account.limited import asker_of, limited_words, refused
from cuota.web.pages.account.said import key_of
from cuota.web.pages.account.view import amount, common, plan_card
from cuota.web.pages.account.visit import Known, of_plan, plan_path
from cuota.web.pages.card_entry import card_token
from cuota.web.pages.card_fields import card_form, policy_of
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.render import page
from cuota.web.service import service_of

GIVEN_UP = "That payment was canceled, and nothing was charged. Enter another card."
_CENTS = re.compile(r"[0-9]{1,15}", re.ASCII)


@of_plan
async def show(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show the form for a new card."""
    if detail.shown.order.charging is not None:
        return see_other(plan_path(detail, "busy"))
    if not owed(detail.shown.plan):
        return see_other(plan_path(detail, "nothing-left"))
    gave_up = request.query_params.get("said") == GAVE_UP
    return _page(request, known, detail, told=GIVEN_UP if gave_up else None)


def _page(
    request: Request,
    known: Known,
    detail: PlanDetail,
    problem: Problem | None = None,
    told: str | None = None,
) -> Response:
    shown, service = detail.shown, service_of(request)
    late = sum(item.total for item in overdue(service.context, detail))
    lead = f"For your order at {shown.merchant}. You now pay with {plan_card(shown)}."
    context = {
        **common(request, known.visit.secret, "Change the card", lead, known),
        "address": plan_path(detail),
        "late": amount(shown, late) if late else None,
        "cents": late,
        "card": card_form(service.context, None),
        "month": f"{_today(service.context, detail):%Y-%m}",
        "notice": told,
    }
    if problem:
        context |= {"errors": problem.errors, "notice": problem.notice}
    allowed = policy_of(service.context.rails.card.fields())
    return page(request, "account/card.html", context, status=400 if problem else 200, allowed=allowed)


@of_plan
async def change(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Replace the card of the plan, and charge the new card for the overdue amount that the page showed."""
    form, context = known.form, service_of(request).context
    if not _CENTS.fullmatch(form.get("expected", "")) or not owed(detail.shown.plan):
        return see_other(plan_path(detail, "changed" if owed(detail.shown.plan) else "nothing-left"))
    try:
        token = await card_token(context, form, _today(context, detail))
        await change_card(context, detail, token, int(form["expected"]), asker_of(request, known))
    except Limited as limited:
        said = Problem(notice=limited_words(detail, limited))
        return refused(_page(request, known, detail, said), request, limited)
    except BadCard as bad:
        return _page(request, known, detail, Problem(bad.errors))
    except Problem as said:
        if said.notice in {manage_plan.NOT_REACHED, manage_plan.ENTER_AGAIN, OTHER_CARD, CHARGED_BACK}:
            return _page(request, known, detail, said)
        return see_other(plan_path(detail, key_of(said.notice)))
    became = "card"
    with afterwards("which text the page shows"):
        ids = detail.shown.order.merchant_id, detail.shown.order.order_id
        after = await find_plan(context, known.consumer_id, *ids) or detail
        became = _became(context, detail, after)
    return see_other(plan_path(detail, became))


def _today(context: Context, detail: PlanDetail) -> date:
    """Return today's date where the consumer lives. A card is good through the last day of its month there."""
    return local_day(context.now(), detail.shown.zone)


def _became(context: Context, before: PlanDetail, after: PlanDetail) -> str:
    """Return the key of the text about the new card. The plan before and after determines the key."""
    if not overdue(context, before):
        return "card"
    if after.shown.order.charging is not None:
        return "card-busy"
    return "card-declined" if overdue(context, after) else "card-paid"
