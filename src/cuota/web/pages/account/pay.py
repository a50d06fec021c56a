"""The page on which a consumer pays one payment early, the overdue payments, or everything that is left."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dates import day
from cuota.core.installment import Installment, charge_day, owed
from cuota.core.plan.onward import read_numbers
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.checkout.take_step import Problem
from cuota.flows.plan.limit_asks import Limited
from cuota.flows.plan.manage_plan import BUSY, InProgress, pay_early
from cuota.web.pages.account.limited import asker_of, limited_words, refused
from cuota.web.pages.account.said import key_of, paid_lately, why_nothing
from cuota.web.pages.account.view import amount, common, plan_card
from cuota.web.pages.account.visit import Known, of_plan, plan_path
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.render import page
from cuota.web.service import service_of

REST = "Your payment went through. Your bank confirms each payment separately: here is the rest of what you chose."
_CENTS = re.compile(r"[0-9]{1,15}", re.ASCII)


@of_plan
async def show(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show the payments, their sum and the card, with a button to pay.

    The query selects the payments: `?number=` one payment, `?numbers=` several, `?overdue=1` the overdue ones, `?all=1` all that
    are left.
    """
    if detail.shown.order.charging is not None:
        return see_other(plan_path(detail, "busy"))
    if detail.shown.order.paused_at is not None:
        return see_other(plan_path(detail, "paused"))
    query, waiting = request.query_params, owed(detail.shown.plan)
    chosen: list[int] = []
    if query.get("overdue") == "1":
        waiting = [item for item in waiting if item.failures]
    elif query.get("all") != "1":
        chosen = read_numbers(query.get("numbers") or query.get("number") or "")
        waiting = [item for item in waiting if item.number in chosen]
    if not waiting:
        return see_other(plan_path(detail, why_nothing(detail, chosen)))
    # Anybody can write a link with `said=rest`, so the text is shown only right after a payment.
    paid = query.get("said") == "rest" and paid_lately(detail, service_of(request).context.now())
    return _page(request, known, detail, waiting, REST if paid else None)


def _page(
    request: Request, known: Known, detail: PlanDetail, items: list[Installment], notice: str | None = None
) -> Response:
    shown = detail.shown
    cents = sum(item.total for item in items)
    total = amount(shown, cents)
    which = "This payment" if len(items) == 1 else "These payments"
    lead = f"{which} of your order at {shown.merchant}, charged to your card now."
    context = {
        **common(request, known.visit.secret, f"Pay {total}", lead, known),
        "address": plan_path(detail),
        "rows": [
            {
                "number": item.number,
                "day": day(charge_day(item, ZoneInfo(shown.zone))),
                "amount": amount(shown, item.total),
                "overdue": bool(item.failures),
            }
            for item in items
        ],
        "total_now": total,
        "card": plan_card(shown),
        "card_mark": _mark(detail),
        "numbers": ",".join(str(item.number) for item in items),
        "cents": cents,
        "notice": notice,
        "notice_tone": "done" if notice == REST else "error",
    }
    return page(request, "account/pay.html", context)


def _mark(detail: PlanDetail) -> str:
    card = detail.shown.card
    return f"{card.brand}-{card.last4}"


@of_plan
async def pay(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Pay. The payments, their sum and the card must still be those that the page showed."""
    numbers, cents = known.form.get("numbers", ""), known.form.get("expected", "")
    chosen = read_numbers(numbers) if _CENTS.fullmatch(cents) else []
    if not chosen or known.form.get("card") != _mark(detail):
        return see_other(plan_path(detail, "changed"))
    try:
        await pay_early(service_of(request).context, detail, chosen, int(cents), asker_of(request, known))
    except Limited as limited:
        items = [item for item in owed(detail.shown.plan) if item.number in chosen]
        return refused(_page(request, known, detail, items, limited_words(detail, limited)), request, limited)
    except InProgress as waits:
        # The plan's page says so, or leads to the card's bank to confirm the charge.
        return see_other(plan_path(detail, "asked", waits.onward))
    except Problem as said:
        return see_other(plan_path(detail, "asked" if said.notice == BUSY else key_of(said.notice)))
    return see_other(plan_path(detail, "paid"))
