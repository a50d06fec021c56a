"""The pages on which a consumer reads about their plans: the list, one plan, its agreement, and a receipt."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.card import card_name
from cuota.core.installment import Installment, owed, plan_state, upcoming
from cuota.core.plan.agreement import accepted_text
from cuota.core.refusal import Refused
from cuota.db.checkout import remembered
from cuota.db.plan import accounts
from cuota.db.plan.accounts import PlanDetail, ShownPlan
from cuota.flows.checkout.remember_browser import forget_all
from cuota.flows.dispute.ask_consumer import disputes_of_order
from cuota.flows.plan.manage_plan import BUSY
from cuota.web.ids import guid
from cuota.web.pages.account.change_view import changes_of, pause_words
from cuota.web.pages.account.charging import charging
from cuota.web.pages.account.dispute_view import problems_of
from cuota.web.pages.account.said import told
from cuota.web.pages.account.view import (
    STATES,
    amount,
    card_of_list,
    cause_words,
    common,
    day_there,
    next_words,
    overdue_words,
    payments_of,
    plan_card,
    return_words,
)
from cuota.web.pages.account.visit import PATH, Known, missing, of_plan, onward_of, plan_path, proved
from cuota.web.pages.checkout.charging import go_to
from cuota.web.pages.checkout.known_browser import drop_token
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.checkout.view import plan_of
from cuota.web.pages.render import PageContext, page
from cuota.web.pages.support import support_links
from cuota.web.service import service_of

A_PAGE = 20
PAUSED = (
    "Nothing is charged while a dispute about this order is open. Afterward, every payment is due later by as many days as"
    " the dispute has lasted."
)
_LAST_PAGE = 10_000


async def plan_list(request: Request, known: Known) -> Response:
    """Show the consumer's plans, 20 on a page. Plans with payments left come first."""
    context = service_of(request).context
    text = request.query_params.get("page", "1")
    at = min(max(int(text), 1), _LAST_PAGE) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    browsers = await remembered.count(context.pool, known.consumer_id, context.real_now())
    found = await accounts.plans_of(context.pool, known.consumer_id, A_PAGE + 1, (at - 1) * A_PAGE)
    lead = "Every plan that you pay with this number." if found else None
    now = context.now()
    shown = {
        **common(request, known.visit.secret, "Your plans", lead, known),
        "browsers": browsers,
        "plans": [card_of_list(each, now) for each in found[:A_PAGE]],
        "older": f"{PATH}?page={at + 1}" if len(found) > A_PAGE else None,
        "newer": (PATH if at == 2 else f"{PATH}?page={at - 1}") if at > 1 else None,
        "home": PATH,
    }
    if request.query_params.get("said") == "forgotten":
        shown |= {
            "notice": "No browser offers your card any more. The next checkout will ask for your card.",
            "notice_tone": "done",
        }
    return page(request, "account/plans.html", shown)


def _page_of(request: Request, known: Known, detail: PlanDetail, title: str, lead: str | None) -> PageContext:
    """Return the template values that every page about one plan needs."""
    return {
        **common(request, known.visit.secret, title, lead, known),
        "address": plan_path(detail),
        "merchant_name": detail.shown.merchant,
        "reference": detail.shown.reference,
    }


@proved
async def forget(request: Request, known: Known) -> Response:
    """Forget all remembered browsers of this consumer, so that none of them offers to pay with the consumer's card."""
    await forget_all(service_of(request).context, known.consumer_id)
    response = see_other(f"{PATH}?said=forgotten")
    drop_token(request, response)
    return response


@of_plan
async def plan(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show one plan: the next payment, all payments, and the returned money."""
    shown, brand = detail.shown, service_of(request).settings.brand_name
    state = plan_state(shown.plan)
    now = _now(request, detail)
    if shown.order.charging is not None:
        asked = await charging(request, known, detail)
        if isinstance(asked, Response):
            return asked
        now = asked
    elif (rest := _rest(request, detail)) is not None:
        return see_other(rest)
    context: PageContext = {
        **_page_of(request, known, detail, shown.merchant, None),
        "again": plan_path(detail, onward=onward_of(request)),
        "support": support_links(shown.support_email, shown.support_url),
        "home": PATH,
        "agreed": day_there(shown.agreed_at, shown.zone, year=True),
        "state": state,
        "state_word": STATES[state],
        "plan": plan_of(shown.plan, shown.order.currency, finance=False, zone=ZoneInfo(shown.zone)),
        "payments": payments_of(detail),
        "returns": [return_words(detail, back, brand) for back in detail.returns],
        "now": now,
        "causes": cause_words(detail),
        "changes": changes_of(detail),
        "problems": problems_of(
            detail,
            await disputes_of_order(
                service_of(request).context, shown.order.merchant_id, shown.order.order_id
            ),
        ),
    }
    context["notice"], context["notice_tone"] = told(request, detail)
    bank = now.get("bank")
    if bank and context["notice"] == BUSY:
        context["notice"] = None  # the page has a longer text below
    response = page(request, "account/plan.html", context)
    if bank and now["goes"]:
        go_to(response, str(bank))
    return response


def _rest(request: Request, detail: PlanDetail) -> str | None:
    """Return the address at which the consumer pays the rest of several chosen payments, after the bank confirmed one of them.

    None if nothing of these is left, the payment before them was not made, or nothing can be paid now.
    """
    onward, shown = onward_of(request), detail.shown
    if onward is None or shown.order.paused_at is not None or shown.needs_card:
        return None
    if not any(item.number == onward.paying and item.paid for item in shown.plan):
        return None
    left = [str(item.number) for item in owed(shown.plan) if item.number in onward.then]
    return f"{plan_path(detail)}/pay?numbers={','.join(left)}&said=rest" if left else None


def _now(request: Request, detail: PlanDetail) -> PageContext:
    """Return the values for the part of the page with the next payment and the consumer's possible actions."""
    shown, now = detail.shown, service_of(request).context.now()
    waiting = upcoming(shown.plan, ZoneInfo(shown.zone))
    late = [item for item in waiting if item.failures]
    if waiting and shown.order.paused_at is not None:
        return {"title": "Payments are paused", "texts": [PAUSED], "busy": False, "pay": None}
    if not waiting:
        return {"title": "Nothing left to pay", "texts": [next_words(shown, now)], "busy": False, "pay": None}
    texts = [overdue_words(shown, item, now) for item in late] or [f"{next_words(shown, now)}."]
    texts += pause_words(detail, now)
    pay = late or waiting[:1]
    rest = amount(shown, sum(item.total for item in waiting)) if len(waiting) > len(pay) else None
    return {
        "title": "Overdue" if late else "Next payment",
        "texts": texts,
        "busy": False,
        "pay": _pay_words(shown, pay),
        "which": "overdue=1" if late else f"number={pay[0].number}",
        "rest": f"Pay all that is left, {rest}" if rest else None,
        "another_card": shown.needs_card or any(_stopped(item) for item in late),
        "dead_card": shown.needs_card,
        "card": plan_card(shown),
    }


def _pay_words(shown: ShownPlan, items: list[Installment]) -> str:
    cents = amount(shown, sum(item.total for item in items))
    if not items[0].failures:
        return f"Pay {cents} early"
    stopped = any(_stopped(item) for item in items)
    return f"Try {plan_card(shown)} once more" if stopped else f"Pay the overdue {cents}"


def _stopped(item: Installment) -> bool:
    """Return whether the card could not pay, so that the consumer must act.

    This is False for a written-off payment, because its card is not charged any more.
    """
    return item.charge_at is None and item.written_off_at is None


@of_plan
async def agreement(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show the agreement exactly as the consumer accepted it."""
    lead = f"You accepted this on {day_there(detail.shown.agreed_at, detail.shown.zone, year=True)}."
    context = {
        **_page_of(request, known, detail, "Payment agreement", lead),
        "paragraphs": accepted_text(detail.agreement).split("\n\n"),
        "creditor": service_of(request).settings.creditor,
        "hash": detail.agreement_hash,
        "changes": changes_of(detail),
    }
    return page(request, "account/agreement.html", context)


@of_plan
async def receipt(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show a printable receipt of one card payment."""
    try:
        charge_id = guid(request.path_params["charge_id"])
    except Refused:
        return missing(request)
    paid = next((each for each in detail.receipts if each.charge_id == charge_id), None)
    if paid is None:
        return missing(request)
    shown = detail.shown
    local = paid.paid_at.astimezone(ZoneInfo(shown.zone))
    returned = shown.plan[paid.installment - 1].returned
    rows = [
        ("Paid on", f"{day_there(paid.paid_at, shown.zone, year=True)}, {local:%I:%M %p %Z}".replace(", 0", ", ")),
        ("Payment", f"{paid.installment} of {len(shown.plan)}"),
        ("For your order at", shown.merchant),
        ("Order", shown.reference),
        ("Card", card_name(paid.card_brand, paid.card_last4)),
        ("Paid to", service_of(request).settings.brand_name),
        ("Receipt number", str(paid.charge_id)),
    ]  # fmt: skip
    context = {
        **_page_of(request, known, detail, "Receipt", None),
        "amount": amount(shown, paid.amount),
        "rows": rows,
        "returned": amount(shown, returned) if returned else None,
        "causes": cause_words(detail) if returned else [],
        "kept": amount(shown, paid.amount - returned),
    }
    return page(request, "account/receipt.html", context)
