"""Makes a merchant's payout and the events that reported it, without the service, for the tests of the client."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from cuota.client import Payout, PayoutLine, PayoutTotal, Terms, cents, verify_payout
from cuota.core.money import share
from cuota.core.payout.terms import RefundFee, SettlementTerms

START = datetime(2026, 11, 23, 12, tzinfo=UTC)


@dataclass
class Book:
    """A payout with its lines, the events that reported them, and the terms."""

    payout: Payout
    lines: list[PayoutLine]
    events: list[dict[str, Any]]
    terms: list[Terms]

    def kinds(self, **more: Any) -> set[str]:
        verdict = verify_payout(self.payout, self.lines, self.events, self.terms, **more)
        return {problem.kind for problem in verdict.problems}

    def named(self, **more: Any) -> set[str | None]:
        verdict = verify_payout(self.payout, self.lines, self.events, self.terms, **more)
        return {problem.line_id for problem in verdict.problems}


def line(
    number: int, type_: str, gross: int, fee: int, order: str = "", ref: str = "", place: int | None = None
) -> PayoutLine:
    at = START + timedelta(hours=6)
    own = f"A-{order[-1:]}" if order else ""
    return PayoutLine(
        str(number), type_, order, own, ref, cents(gross), cents(fee), cents(gross + fee), at, place, {}
    )  # fmt: skip


def payout_of(lines: list[PayoutLine]) -> Payout:
    totals = {}
    for name in ("overall", *{each.type for each in lines}):
        of = [each for each in lines if name in ("overall", each.type)]
        sums = (sum((getattr(each, part) for each in of), Decimal(0)) for part in ("gross", "fee", "net"))
        totals[name] = PayoutTotal(len(of), *sums)
    net = totals["overall"].net
    ends = lines[0].line_id, lines[-1].line_id
    return Payout("p", "paid", net, "USD", START, date(2026, 11, 25), len(lines), "6789", *ends, totals, {})


Moves = list[tuple[int, bool, int]]


def book(moves: Moves, policy: RefundFee, percent: int, fixed: int, reserve: int = 0, first: int = 5) -> Book:
    """Return a payout of captures and refunds of three orders, with fees by the service's own rules."""
    rules = SettlementTerms(1, START - timedelta(days=9), percent, fixed, policy)
    terms = Terms(1, rules.valid_from, cents(percent), cents(fixed), policy.value, cents(reserve), {})
    lines: list[PayoutLine] = []
    events: list[dict[str, Any]] = []
    orders: dict[int, dict[str, Any]] = {}
    for place, (which, is_refund, cents_) in enumerate(moves, 11):
        order_id = str(UUID(int=which))
        order = orders.setdefault(which, {"captures": [], "refunds": [], "sums": [0, 0, 0, 0], "n": 1})
        sums = order["sums"]
        amount = min(cents_, sums[0] - sums[1]) if is_refund else cents_
        if amount == 0:
            continue
        order["n"] += 1
        kind, ref = ("refund" if is_refund else "capture"), f"r-{place}"
        at = (START + timedelta(seconds=place)).isoformat()
        entry = {"merchantReference": ref, "amount": cents(amount)}
        order[f"{kind}s"].append({**entry, "refundedDateTime" if is_refund else "dateTime": at})
        if is_refund:
            sums[1] += amount
            fee = max(0, share(sums[2], sums[1], sums[0]) - sums[3])
            sums[3] += fee
        else:
            sums[0] += amount
            sums[2] += rules.returnable(amount)
            fee = -rules.fee(amount)
        signed = -amount if is_refund else amount
        lines.append(line(first + len(lines), kind, signed, 0, order_id, ref, place))
        if fee:
            other = "fee_returned" if is_refund else "fee"
            lines.append(line(first + len(lines), other, 0, fee, order_id, ref, place))
        record = {name: list(order[name]) for name in ("captures", "refunds")}
        events.append(
            {
                "id": f"evt_{UUID(order_id).hex}_{order['n']}", "type": f"{kind}.completed", "orderId": order_id,
                "merchantReference": f"A-{order_id[-1:]}", "amount": cents(amount), "sequence": order["n"], "order": record,
            }
        )  # fmt: skip
    moved = sum((each.gross for each in lines), Decimal(0))
    kept = share(max(0, int(moved * 100)), reserve, 10_000)
    if kept:
        lines.append(line(first + len(lines), "reserve_held", -kept, 0))
    return Book(payout_of(lines), lines, events, [terms])
