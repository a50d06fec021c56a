"""The payouts of all merchants: sent payouts, returned payouts, and payouts that an operator must look at."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import day
from cuota.core.operator.role import OperatorAction
from cuota.core.payout.late import PaymentDays, is_unconfirmed, problem_note
from cuota.core.payout.payout import PayoutStatus
from cuota.db.payout import operator_list
from cuota.db.payout.operator_list import ListedPayout, PausedMerchant
from cuota.db.position import Position
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import NO_BANK_RAIL
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.parts import ListPage, cell, section, state, table
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 50
PAYOUTS = f"{PATH}/payouts"
# This filter is not a status. It finds payouts with a problem that the bank reported, or without a confirmation in time.
_TROUBLED = "look"
# This filter is not a status either. It finds payouts that wait for a release.
_HELD = "held"
_WORDS = {
    PayoutStatus.CREATED: ("Waiting", "wait"),
    PayoutStatus.SENT: ("Sent", "wait"),
    PayoutStatus.PAID: ("Paid", "done"),
    PayoutStatus.RETURNED: ("Returned", "bad"),
}


@allowed(OperatorAction.READ_MONEY)
async def payouts(request: Request, desk: OperatorDesk) -> Response:
    """List payouts, 50 on a page: all or those of one status, newest first, or those to look at, oldest first."""
    context, asked = service_of(request).context, request.query_params.get("status", "")
    view = asked if asked in {_TROUBLED, _HELD, *PayoutStatus} else ""
    at, days = ListPage.of(request, PAYOUTS, status=view), days_now(context)
    if view == _TROUBLED:
        found = await operator_list.troubled(desk.every, days, A_PAGE + 1, at.after)
    elif view == _HELD:
        found = await operator_list.held(desk.every, A_PAGE + 1, at.after)
    else:
        status = PayoutStatus(view) if view else None
        found = await operator_list.payouts(desk.every, status, A_PAGE + 1, at.after)
    tabs = [
        ("", "All"),
        (_TROUBLED, "To look at"),
        (_HELD, "To release"),
        *((each.value, words[0]) for each, words in _WORDS.items()),
    ]
    sections = [] if context.rails.bank is not None else [section(texts=[NO_BANK_RAIL])]
    sections += [_paused(await operator_list.paused(desk.every, None))]
    links = at.links(found, A_PAGE, _held_position if view == _HELD else _closed_position)
    sections += [_listed(found[:A_PAGE], days, view, links)]
    shown: PageContext = {
        **common(request, desk, "Payouts", here=PAYOUTS),
        "tabs": [
            {
                "address": f"{PAYOUTS}?status={value}" if value else PAYOUTS,
                "label": label,
                "here": value == view,
            }
            for value, label in tabs
        ],
        "sections": sections,
    }
    return page(request, "operator/page.html", shown)


def _closed_position(each: ListedPayout) -> Position:
    return each.closed_at, each.payout_id


def _held_position(each: ListedPayout) -> Position:
    assert each.held_at is not None
    return each.held_at, each.payout_id


def _paused(found: list[PausedMerchant]) -> PageContext:
    text = "No merchant's payouts are paused."
    rows = [
        [cell(each.name, f"{PATH}/merchants/{each.merchant_id}"), cell(when(each.since))] for each in found
    ]
    return table(
        "Paused after a return, until another bank account takes effect",
        [cell("Merchant"), cell("Since")],
        rows,
        text,
    )


def _listed(
    found: list[ListedPayout], days: PaymentDays, view: str, links: list[tuple[str, str]]
) -> PageContext:
    columns = [
        cell("Merchant"),
        cell("Arrival", wide=True),
        cell("Account", wide=True),
        cell("Status"),
        cell("Amount", amount=True),
    ]
    rows = [
        [
            cell(each.merchant, address_of(each), more=_note(each, days)),
            cell(day(each.arrival_date, year=True), wide=True),
            cell(f"ends in {each.last4}", wide=True),
            state(*state_of(each)),
            cell(money.shown(each.amount, each.currency), amount=True),
        ]
        for each in found
    ]
    empty = {
        "": "No payouts yet. The first one is made at the end of the first day with captures.",
        _TROUBLED: "The bank has accepted every payout, and has paid each in time.",
        _HELD: "No payout is held.",
    }
    return table("Payouts", columns, rows, empty.get(view, "No payouts with this status."), links)


def address_of(each: ListedPayout) -> str:
    """Return the address of the payout's page if the payout can be released, otherwise the address of its merchant's page."""
    if each.held_at is None:
        return f"{PATH}/merchants/{each.merchant_id}"
    return f"{PAYOUTS}/{each.merchant_id}/{each.payout_id}"


def state_of(each: ListedPayout) -> tuple[str, str]:
    """Return the state of a payout: a word and the kind of its mark."""
    return _WORDS[each.status] if each.held_at is None else ("Held", "bad")


def _note(each: ListedPayout, days: PaymentDays) -> str:
    if each.held_at is not None:
        return f"held since {when(each.held_at)}"
    if each.return_reason:
        return f"returned: {each.return_reason}"
    if note := problem_note(each.problem, each.tries, each.arrival_date, days):
        return note
    if is_unconfirmed(each.status, each.arrival_date, days, each.confirm_by):
        return "overdue: the bank has not confirmed the payment"
    return f"number {each.number}"
