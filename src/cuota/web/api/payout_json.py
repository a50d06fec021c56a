"""Payouts, settlement lines and terms as JSON members."""

from __future__ import annotations

from cuota.core.instant import timestamp
from cuota.core.money import decimal_from
from cuota.core.payout.balance import Balance
from cuota.core.payout.line import SettlementLine
from cuota.core.payout.payout import Payout
from cuota.core.payout.terms import SettlementTerms
from cuota.db.payout.listing import LineTotal

PayoutMembers = dict[str, object]


def payout_json(payout: Payout) -> PayoutMembers:
    """Return an entry of the list of payouts."""
    return {
        "payoutId": payout.payout_id,
        "status": payout.status,
        "amount": decimal_from(payout.amount),
        "currency": payout.currency,
        "closedAt": timestamp(payout.closed_at),
        "arrivalDate": payout.arrival_date.isoformat(),
        "lineCount": payout.line_count,
        "bankAccount": {"last4": payout.account_last4},
    }


def payout_detail(payout: Payout, totals: tuple[LineTotal, ...]) -> PayoutMembers:
    """Return one payout with its totals."""
    whole = LineTotal(
        "overall",
        sum(each.count for each in totals),
        sum(each.gross for each in totals),
        sum(each.fee for each in totals),
        sum(each.net for each in totals),
    )
    times = {"sentAt": payout.sent_at, "paidAt": payout.paid_at, "returnedAt": payout.returned_at}
    return {
        **payout_json(payout),
        "number": payout.number,
        "firstLineId": str(payout.first_line),
        "lastLineId": str(payout.last_line),
        **{name: timestamp(at) if at else None for name, at in times.items()},
        "returnReason": payout.return_reason,
        "totals": {each.type: _total(each) for each in (*totals, whole)},
    }


def _total(total: LineTotal) -> PayoutMembers:
    return {
        "count": total.count,
        "gross": decimal_from(total.gross),
        "fee": decimal_from(total.fee),
        "net": decimal_from(total.net),
    }


def line_json(line: SettlementLine) -> PayoutMembers:
    """Return a settlement line."""
    return {
        "lineId": str(line.number),
        "type": line.type,
        "orderId": line.order_id,
        "merchantReference": line.merchant_reference,
        "reference": line.reference,
        "gross": decimal_from(line.gross),
        "fee": decimal_from(line.fee),
        "net": decimal_from(line.net),
        "at": timestamp(line.at),
        "sequence": line.sequence,
    }


def balance_json(balance: Balance) -> PayoutMembers:
    """Return the balance. `nextPayout` is null if nothing will be paid at the next cutoff."""
    following: PayoutMembers | None = None
    if (expected := balance.next_payout) is not None:
        following = {
            "closesAt": timestamp(expected.closes_at),
            "arrivalDate": expected.arrival_date.isoformat(),
            "amount": decimal_from(expected.amount),
        }
    return {
        "available": decimal_from(balance.available),
        "pending": decimal_from(balance.pending),
        "reserved": decimal_from(balance.reserved),
        "debt": decimal_from(balance.debt),
        "nextPayout": following,
    }


def terms_json(terms: SettlementTerms) -> PayoutMembers:
    """Return one version of the terms. A percentage of 5.90 is 590 basis points."""
    return {
        "version": terms.version,
        "validFrom": timestamp(terms.valid_from),
        "percent": decimal_from(terms.percent),
        "fixed": decimal_from(terms.fixed),
        "refundFee": terms.refund_fee,
        "payout": terms.payout,
        "minimum": decimal_from(terms.minimum),
        "reserve": decimal_from(terms.reserve),
        "reserveDays": terms.reserve_days,
        "cutoff": terms.cutoff.strftime("%H:%M"),
        "timeZone": terms.time_zone,
    }
