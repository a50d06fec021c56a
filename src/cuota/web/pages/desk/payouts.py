"""Payouts in the merchant's dashboard: the balance, the deposits, and which orders are in which deposit."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import day
from cuota.core.desk.role import Action
from cuota.core.desk.sort import SORT_WORDS, Sort, read_sort
from cuota.core.payout.balance import Balance
from cuota.core.payout.line import LineType
from cuota.core.payout.payout import Payout, PayoutStatus
from cuota.db.desk import sorted_lists
from cuota.db.payout import balance as balances
from cuota.db.payout import listing
from cuota.db.payout.listing import LineTotal, ListedLine
from cuota.flows.desk.record import AuditNote, record
from cuota.flows.payout.change_bank_account import read_standing
from cuota.web import payout_csv
from cuota.web.pages.checkout.session import Stop
from cuota.web.pages.desk.view import common, day_of, sort_options, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE, LONG = 50, 5000
_PAYOUTS = f"{PATH}/payouts"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
STATES = {
    PayoutStatus.CREATED: ("Closed, not sent yet", "wait"),
    PayoutStatus.SENT: ("On its way", "wait"),
    PayoutStatus.PAID: ("Paid", "done"),
    PayoutStatus.RETURNED: ("Returned", "bad"),
}
_HELD = ("Held by your payment provider", "wait")
TYPES = {
    LineType.CAPTURE: "Capture",
    LineType.REFUND: "Refund",
    LineType.FEE: "Fee",
    LineType.FEE_RETURNED: "Fee returned",
    LineType.DISPUTE_WITHHELD: "Withheld for a dispute",
    LineType.DISPUTE_RELEASED: "Released after a dispute",
    LineType.DISPUTE_LOST: "Dispute lost",
    LineType.RESERVE_HELD: "Reserve held",
    LineType.RESERVE_RELEASED: "Reserve released",
    LineType.ADJUSTMENT: "Adjustment",
    LineType.PAYOUT_RETURNED: "Returned payout",
}


def _after(request: Request) -> int | None:
    text = request.query_params.get("after", "")
    return int(text) if _NUMBER.fullmatch(text) else None


@allowed(Action.READ_PAYOUTS)
async def payouts(request: Request, desk: Desk) -> Response:
    """Show the balance, and list the payouts, newest first."""
    context = service_of(request).context
    status = request.query_params.get("status", "")
    statuses = (PayoutStatus(status),) if status in set(PayoutStatus) else ()
    sort = read_sort(request.query_params.get("sort", ""), SORT_WORDS)
    after = _after(request)
    behind = None if after is None else min(after, listing.NEWEST)
    found = await sorted_lists.payouts(context.pool, desk.merchant_id, sort, behind, statuses, A_PAGE + 1)
    shown = found[:A_PAGE]
    query = (f"status={status}&" if statuses else "") + (f"sort={sort}&" if sort is not Sort.NEWEST else "")
    standing = await read_standing(context, desk.merchant_id)
    coming = standing.pending.effective_at if standing.pending else None
    values: PageContext = {
        **common(request, desk, "Payouts", here=_PAYOUTS),
        "balance": _balance(await balances.read(context.pool, desk.merchant_id, context.now())),
        "account": standing.in_force.last4 if standing.in_force else None,
        "change_at": when(coming) if coming else None,
        "rows": [payout_row(each) for each in shown],
        "states": [{"value": each.value, "label": words} for each, (words, _) in STATES.items()],
        "status": status if statuses else "",
        "sorts": sort_options(SORT_WORDS),
        "sort": sort.value,
        "most": sorted_lists.MOST_SORTED
        if await sorted_lists.leaves_out_payouts(context.pool, desk.merchant_id, sort, statuses)
        else None,
        "next": f"{_PAYOUTS}?{query}after={shown[-1].number}" if len(found) > A_PAGE else None,
        "later": after is not None,
        "export": f"{_PAYOUTS}/export",
    }
    return page(request, "desk/payouts.html", values)


def _balance(found: Balance) -> list[tuple[str, str, str]]:
    """Return the parts of the balance with their labels."""
    rows = [
        ("Available", money.shown(found.available), "not taken by a payout at the last cutoff"),
        ("Since then", money.shown(found.pending), "captures less refunds and fees"),
        ("In reserve", money.shown(found.reserved), "kept back for a while"),
    ]
    if found.debt:
        rows.append(("You owe", money.shown(found.debt), "taken from the next captures"))
    if (coming := found.next_payout) is not None:
        rows.append(("Next deposit", money.shown(coming.amount), f"closes {day_of(coming.closes_at)}, arrives {day(coming.arrival_date)}"))  # fmt: skip
    else:
        rows.append(("Next deposit", "None", "nothing would be paid now"))
    return rows


def payout_row(each: Payout) -> PageContext:
    """Return the values of one payout."""
    word, kind = STATES[each.status] if each.held_at is None else _HELD
    return {
        "address": f"{_PAYOUTS}/{each.payout_id}",
        "number": each.number,
        "closed": day_of(each.closed_at),
        "arrival": day(each.arrival_date, year=True) if each.held_at is None else "after its release",
        "account": each.account_last4,
        "lines": f"{each.line_count:,}",
        "state": {"word": word, "kind": kind},
        "amount": money.shown(each.amount, each.currency),
    }


@allowed(Action.READ_PAYOUTS)
async def payout(request: Request, desk: Desk) -> Response:
    """Show one payout: its lines in their order, 50 on a page, and on the first page its totals by type."""
    found, pool = await _find(request, desk), service_of(request).context.pool
    after = max(_after(request) or 0, found.first_line - 1)
    lines = await listing.lines(pool, desk.merchant_id, after, found.last_line, A_PAGE + 1)
    shown, address = lines[:A_PAGE], f"{_PAYOUTS}/{found.payout_id}"
    later = after >= found.first_line
    # The totals are computed from all lines, which may be 100,000. So only the first page has them.
    totals = {} if later else await listing.totals(pool, desk.merchant_id, [found.payout_id])
    values: PageContext = {
        **common(request, desk, f"Payout {found.number}", here=_PAYOUTS),
        "one": payout_row(found),
        "facts": _facts(found),
        "totals": None if later else _totals(found, totals[found.payout_id]),
        "lines": [_line(each, found) for each in shown],
        "next": f"{address}?after={shown[-1].line.number}" if len(lines) > A_PAGE else None,
        "first": address if later else None,
        "export": f"{address}/export",
        # A short file is sent at once.
        "download_script": found.line_count > LONG,
        "line_count": found.line_count,
    }
    return page(request, "desk/payout.html", values)


def _facts(found: Payout) -> list[tuple[str, str]]:
    rows = [("Closed", when(found.closed_at)), ("Arrives", day(found.arrival_date, year=True)), ("Bank account", f"ending in {found.account_last4}")]  # fmt: skip
    if found.held_at is not None:
        # The day is computed again when the payout is released.
        rows[1:2] = [("Arrives", "when your payment provider releases it")]
    named = (("Sent", found.sent_at), ("Paid", found.paid_at), ("Returned", found.returned_at))
    rows += [(label, when(at)) for label, at in named if at is not None]
    return [*rows, ("Why it came back", found.return_reason)] if found.return_reason else rows


def _totals(found: Payout, totals: tuple[LineTotal, ...]) -> list[PageContext]:
    whole = LineTotal(
        "", sum(each.count for each in totals), sum(each.gross for each in totals),
        sum(each.fee for each in totals), sum(each.net for each in totals),
    )  # fmt: skip
    return [
        {
            "label": TYPES[LineType(each.type)] if each.type else "This payout",
            "whole": not each.type,
            "count": f"{each.count:,}",
            "gross": money.shown(each.gross, found.currency),
            "fee": money.shown(each.fee, found.currency),
            "net": money.shown(each.net, found.currency),
        }
        for each in (*totals, whole)
    ]


def _line(each: ListedLine, found: Payout) -> PageContext:
    line = each.line
    return {
        "type": TYPES[line.type],
        "at": when(line.at),
        "order": f"{PATH}/orders/{line.order_id}" if line.order_id else None,
        "name": line.merchant_reference or line.reference or "",
        "gross": money.shown(line.gross, found.currency),
        "fee": money.shown(line.fee, found.currency),
        "net": money.shown(line.net, found.currency),
    }


async def _find(request: Request, desk: Desk) -> Payout:
    """Return the payout in the path. Raises Stop with the 404 page."""
    payout_id = id_in_path(request, "payout_id")
    found = await listing.payout(service_of(request).context.pool, desk.merchant_id, payout_id)
    if found is None:
        raise Stop(missing(request))
    return found


@allowed(Action.READ_PAYOUTS)
async def export_payouts(request: Request, desk: Desk) -> Response:
    """Download all payouts as CSV, in the same format as the API."""
    context = service_of(request).context
    await _note(request, desk, "All payouts as CSV")
    return await payout_csv.payouts(request, context.pool, desk.merchant_id, ())


@allowed(Action.READ_PAYOUTS)
async def export_lines(request: Request, desk: Desk) -> Response:
    """Download the lines of one payout as CSV, in the same format as the API."""
    found, context = await _find(request, desk), service_of(request).context
    await _note(request, desk, f"Lines of payout {found.number} as CSV")
    return await payout_csv.lines(request, context.pool, found)


async def _note(request: Request, desk: Desk, what: str) -> None:
    """Write the download into the audit log. A HEAD request downloads nothing."""
    if request.method != "HEAD":
        context = service_of(request).context
        await record(context, desk.merchant_id, desk.actor, AuditNote("payouts.export", what))
