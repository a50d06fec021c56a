"""Payouts and settlement lines as CSV (RFC 4180, UTF-8). docs/payouts.md explains the columns.

The file is sent page by page, so a large file needs no more memory than a small one. Columns are only ever added at the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.instant import timestamp
from cuota.core.money import text_of
from cuota.core.payout.line import LineType
from cuota.core.payout.payout import Payout, PayoutStatus
from cuota.core.payout.terms import SettlementTerms, in_force
from cuota.db.payout import listing
from cuota.db.payout import terms as versions
from cuota.db.payout.listing import LineTotal, ListedLine
from cuota.db.session import Session
from cuota.web.csv_text import rows_of, safe, stream

LINES_AT_ONCE = 1000
PAYOUTS_AT_ONCE = 20
# The totals of several payouts are read at once if the payouts have at most this many lines. A statement must end in time.
LINES_ADDED_AT_ONCE = 100_000

LINE_COLUMNS = (
    "payoutId", "payoutNumber", "settlementDate", "lineId", "type", "at", "orderId", "orderedAt", "orderMonth", "orderYear",
    "merchantReference", "reference", "refundReference", "presentmentAmount", "presentmentCurrency", "exchangeRate",
    "orderAmount", "currency", "gross", "percent", "fixed", "feeExcludingTax", "feeTax", "fee", "net", "sequence",
)  # fmt: skip
# The types of settlement lines whose totals are columns in the file of payouts.
_SUMS = (
    ("captures", LineType.CAPTURE), ("refunds", LineType.REFUND), ("fees", LineType.FEE),
    ("feesReturned", LineType.FEE_RETURNED), ("reserveHeld", LineType.RESERVE_HELD),
    ("reserveReleased", LineType.RESERVE_RELEASED), ("adjustments", LineType.ADJUSTMENT),
    ("payoutsReturned", LineType.PAYOUT_RETURNED),
)  # fmt: skip
_DISPUTES = (LineType.DISPUTE_WITHHELD, LineType.DISPUTE_RELEASED, LineType.DISPUTE_LOST)
PAYOUT_COLUMNS = (
    "payoutId", "payoutNumber", "status", "currency", "closedAt", "arrivalDate", "sentAt", "paidAt", "returnedAt",
    "returnReason", "bankAccountLast4", "lineCount", *(name for name, _ in _SUMS), "disputes", "tax", "amount",
)  # fmt: skip


async def payouts(
    request: Request, session: Session, merchant_id: UUID, statuses: tuple[PayoutStatus, ...]
) -> Response:
    """Return all payouts, newest first, each with the totals that make up its amount."""

    async def pages() -> AsyncIterator[bytes]:
        yield rows_of([PAYOUT_COLUMNS])
        below = listing.NEWEST
        while page := await listing.payouts(session, merchant_id, below, statuses, PAYOUTS_AT_ONCE):
            for some in _together(page):
                totals = await listing.totals(session, merchant_id, [each.payout_id for each in some])
                yield rows_of(_payout_row(each, totals[each.payout_id]) for each in some)
            below = page[-1].number

    return await stream(request, pages(), "payouts")


def _together(page: Sequence[Payout]) -> Iterator[list[Payout]]:
    """Split payouts, so that each part has at most LINES_ADDED_AT_ONCE lines, or only one payout."""
    some: list[Payout] = []
    for each in page:
        if some and sum(one.line_count for one in some) + each.line_count > LINES_ADDED_AT_ONCE:
            yield some
            some = []
        some.append(each)
    yield some


async def lines(request: Request, session: Session, payout: Payout) -> Response:
    """Return all lines of a payout."""
    terms = await versions.read_all(session, payout.merchant_id)

    async def pages() -> AsyncIterator[bytes]:
        yield rows_of([LINE_COLUMNS])
        after = payout.first_line - 1
        while page := await listing.lines(
            session, payout.merchant_id, after, payout.last_line, LINES_AT_ONCE
        ):
            yield rows_of(_line_row(payout, each, terms) for each in page)
            after = page[-1].line.number

    return await stream(request, pages(), f"payout-{payout.number}")


def _payout_row(payout: Payout, totals: tuple[LineTotal, ...]) -> list[object]:
    nets = {total.type: total.net for total in totals}
    times = [timestamp(at) if at else "" for at in (payout.sent_at, payout.paid_at, payout.returned_at)]
    return [
        payout.payout_id, payout.number, payout.status, payout.currency, timestamp(payout.closed_at),
        payout.arrival_date.isoformat(), *times, safe(payout.return_reason), payout.account_last4, payout.line_count,
        *(text_of(nets.get(kind, 0)) for _, kind in _SUMS),
        text_of(sum(nets.get(kind, 0) for kind in _DISPUTES)), text_of(0), text_of(payout.amount),
    ]  # fmt: skip


def _line_row(payout: Payout, listed: ListedLine, versions: list[SettlementTerms]) -> list[object]:
    line, ordered = listed.line, listed.ordered_at
    terms = in_force(versions, line.at) if line.type is LineType.FEE else None
    of_order = ["", "", "", ""]
    if listed.order_amount is not None:
        amount = text_of(listed.order_amount)
        of_order = [amount, line.currency, "1", amount]
    is_refund = line.type in {LineType.REFUND, LineType.FEE_RETURNED, LineType.DISPUTE_LOST}
    return [
        payout.payout_id, payout.number, payout.arrival_date.isoformat(), line.number, line.type, timestamp(line.at),
        line.order_id or "", timestamp(ordered) if ordered else "", ordered.month if ordered else "",
        ordered.year if ordered else "", safe(line.merchant_reference), safe(line.reference),
        safe(line.reference) if is_refund else "", *of_order, line.currency, text_of(line.gross),
        text_of(terms.percent) if terms else "", text_of(terms.fixed) if terms else "", text_of(line.fee), text_of(0),
        text_of(line.fee), text_of(line.net), "" if line.sequence is None else line.sequence,
    ]  # fmt: skip
