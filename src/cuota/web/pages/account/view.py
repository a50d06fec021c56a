"""Builds the values for the templates of the consumer's account: texts that are ready to show.

Days and times are in the consumer's time zone.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from starlette.requests import Request

from cuota.core import money
from cuota.core.checkout.card import card_name
from cuota.core.dates import day, moment
from cuota.core.installment import Installment, charge_day, owed, plan_state, upcoming
from cuota.db.plan.accounts import Less, PlanDetail, Return, ShownPlan
from cuota.web.pages.account.visit import PATH, Known, plan_path
from cuota.web.pages.checkout.session import csrf_of
from cuota.web.pages.checkout.view import gone_back, plan_of
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of

STATES = {"active": "Active", "overdue": "Overdue", "completed": "Completed", "cancelled": "Canceled"}
PAYMENT_STATES = {
    "paid": "Paid",
    "scheduled": "Scheduled",
    "overdue": "Overdue",
    "written_off": "Written off",
    "cancelled": "Canceled",
}


def common(
    request: Request, secret: str, title: str, lead: str | None, known: Known | None = None
) -> dict[str, object]:
    """Return the template values that every page here needs.

    With `known`, the page shows the last digits of the consumer's phone number.
    """
    return {
        "page": {"title": title, "lead": lead, "step": None, "steps": 0},
        "sandbox": service_of(request).settings.sandbox,
        "form": {"action": PATH, "csrf": csrf_of(request, secret), "query": "", "more": ""},
        "errors": {},
        "notice": None,
        "notice_tone": "error",
        "values": {},
        "signed_in": (known.visit.session.phone or "")[-2:] if known else None,
    }


def plan_card(shown: ShownPlan) -> str:
    """Return the name of the card that pays next."""
    return card_name(shown.card.brand, shown.card.last4)


def amount(shown: ShownPlan, cents: int) -> str:
    """Format an amount in the order's currency."""
    return money.shown(cents, shown.order.currency)


def when(at: datetime, zone: str) -> str:
    """Format a time in the consumer's time zone, as in `Sat, Dec 5 at 6:00 AM PST`."""
    return moment(at.astimezone(ZoneInfo(zone)))


def day_there(at: datetime, zone: str, *, year: bool = False) -> str:
    """Format the calendar day of a time in the consumer's time zone."""
    return day(at.astimezone(ZoneInfo(zone)).date(), year=year)


def next_words(shown: ShownPlan, now: datetime) -> str:
    """Return one line about the next payment."""
    waiting = upcoming(shown.plan, ZoneInfo(shown.zone))
    if shown.order.charging is not None:
        return "A payment is being made right now."
    if not waiting:
        done = plan_state(shown.plan) == "completed"
        return "You have paid everything." if done else f"Nothing to pay: {_why_nothing(shown)}."
    if shown.order.paused_at is not None:
        return "Payments are paused while a dispute is open."
    late = [each for each in waiting if each.failures]
    if len(late) > 1:
        return f"{amount(shown, sum(each.total for each in late))} is overdue: {len(late)} payments."
    return overdue_words(shown, late[0], now) if late else _coming(shown, waiting[0], now)


def _coming(shown: ShownPlan, item: Installment, now: datetime) -> str:
    card = plan_card(shown)
    zone = ZoneInfo(shown.zone)
    charged_on = charge_day(item, zone)
    on = "today" if charged_on <= now.astimezone(zone).date() else f"on {day(charged_on)}"
    if shown.card_ended:
        return f"{amount(shown, item.total)} {on}: another card is needed, because {card} is not charged any more"
    return f"{amount(shown, item.total)} {on}, {card}"


def overdue_words(shown: ShownPlan, item: Installment, now: datetime) -> str:
    """Return the text that a payment is overdue, and whether its card will be charged again automatically."""
    today = now.astimezone(ZoneInfo(shown.zone)).date()
    was = f"{amount(shown, item.total)} {'is' if item.due_on > today else 'was'} due on {day(item.due_on)}."
    if item.written_off_at is not None:
        return f"{was} It is written off: no card is charged for it any more. You still owe it, and can pay it here."
    if item.charge_at is None:
        return f"{was} {plan_card(shown)} cannot pay it and is not tried again: another card is needed."
    if item.charge_at <= now:
        return f"{was} {plan_card(shown)} is tried again in a few minutes."
    return f"{was} {plan_card(shown)} is tried again on {when(item.charge_at, shown.zone)}."


def card_of_list(shown: ShownPlan, now: datetime) -> PageContext:
    """Return the template values for one plan in the list."""
    order = shown.order
    state = plan_state(shown.plan)
    return {
        "id": f"plan-{order.order_id}",
        "address": f"{PATH}/plans/{order.merchant_id}/{order.order_id}",
        "merchant": shown.merchant,
        "reference": shown.reference,
        "agreed": day_there(shown.agreed_at, shown.zone, year=True),
        "state": state,
        "state_word": STATES[state],
        "next": next_words(shown, now),
        "now": _now(shown),
        "plan": plan_of(shown.plan, order.currency, finance=False, zone=ZoneInfo(shown.zone)),
    }


def _now(shown: ShownPlan) -> PageContext | None:
    """Return the link for a plan in the list that is overdue or needs another card; None if a card is being charged."""
    waiting = owed(shown.plan)
    late = [item for item in waiting if item.failures]
    if not waiting or shown.order.charging is not None or shown.order.paused_at is not None:
        return None
    path = f"{PATH}/plans/{shown.order.merchant_id}/{shown.order.order_id}"
    if shown.needs_card:
        return {"address": f"{path}/card", "label": "Use another card"}
    if not late:
        return None
    return {
        "address": f"{path}/pay?overdue=1",
        "label": f"Pay now, {amount(shown, sum(i.total for i in late))}",
    }


def payments_of(detail: PlanDetail) -> list[PageContext]:
    """Return the rows of the table of payments."""
    shown, zone = detail.shown, ZoneInfo(detail.shown.zone)
    receipts = {receipt.charge_id: receipt for receipt in detail.receipts}
    rows: list[PageContext] = []
    for item in shown.plan:
        receipt = receipts.get(item.charge_id) if item.charge_id else None
        gone = gone_back(item)
        row: PageContext = {
            "number": item.number,
            "day": day_there(receipt.paid_at, shown.zone) if receipt else day(charge_day(item, zone)),
            "amount": amount(shown, item.total + item.returned),
            "state": "returned" if gone else item.state,
            "word": "Sent back" if gone else _word(shown, item),
            "returned": f"{amount(shown, item.returned)} sent back" if item.returned and not gone else None,
            "receipt": f"{plan_path(detail)}/receipts/{receipt.charge_id}" if receipt else None,
        }
        rows.append(row)
    return rows


def _word(shown: ShownPlan, item: Installment) -> str:
    waits = shown.order.paused_at is not None and not item.paid and item.total
    return "Paused" if waits else PAYMENT_STATES[item.state]


def return_words(detail: PlanDetail, back: Return, brand: str) -> str:
    """Return the text about money that is returned to a card."""
    shown, card = detail.shown, card_name(back.card_brand, back.card_last4)
    words = []
    if back.to_card:
        words.append(_to_card(shown, back, card, brand))
    if by_bank := back.amount - back.to_card:
        sum_ = amount(shown, by_bank)
        words.append(
            f"{sum_} came back to you from the bank of {card}, because you disputed the payment there."
        )
    return " ".join(words)


def _to_card(shown: ShownPlan, back: Return, card: str, brand: str) -> str:
    sum_ = amount(shown, back.to_card)
    if back.state == "succeeded":
        return f"{sum_} went back to {card}. Your bank may take a few days to show it."
    if back.state == "failed":
        return f"{sum_} could not be sent back to {card}: its bank refused. Ask {shown.merchant} or {brand} for it."
    if back.state == "paid_otherwise":
        return f"{sum_} could not be sent back to {card}, and {brand} paid it to you in another way."
    return f"{sum_} is on its way back to {card}, since {day_there(back.asked_at, shown.zone)}."


def cause_words(detail: PlanDetail) -> list[str]:
    """Return the reasons why the plan's total is lower than agreed: one text for each void and refund, oldest first."""
    shown = detail.shown
    words = []
    for less in detail.lessened:
        all_of_it = less.amount == shown.order.amount
        cause, on = _cause(shown, less, all_of_it=all_of_it), day_there(less.at, shown.zone)
        words.append(f"{cause}: reduced by {amount(shown, less.amount)} on {on}.")
    return words


def _cause(shown: ShownPlan, less: Less, *, all_of_it: bool) -> str:
    if less.expired:
        return f"{shown.merchant} did not ship {'' if all_of_it else 'the rest '}in time"
    if less.charged_back:
        return "The bank of your card took a payment back"
    if less.kind == "refund":
        return f"You returned items, or {shown.merchant} gave you money back"
    return f"{shown.merchant} canceled {'your' if all_of_it else 'part of your'} order"


def _why_nothing(shown: ShownPlan) -> str:
    """Return the reason why a fully canceled or refunded plan is over, from the order's totals."""
    order = shown.order
    if order.lapsed:
        return f"{shown.merchant} did not ship in time"
    if not order.refunded:
        return f"{shown.merchant} canceled your order"
    # The shop gave the money back, or the bank of the card took it back.
    return "you got all of it back"
