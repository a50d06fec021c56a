"""Checks a payout against your own stored webhooks: every fee is calculated again, and every wrong line is named."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from cuota.client.settled import Payout, PayoutLine, Terms
from cuota.client.settlement_cents import WHOLE, cents_of, share
from cuota.client.settlement_events import ExpectedLine, expected_lines, in_force, raw_of
from cuota.client.settlement_match import MOVED, MatchedLine, matched
from cuota.client.told import Event

_FEES = frozenset({"fee", "fee_returned"})
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class SettlementProblem:
    """A problem in a payout. `kind` is missing, doubled, wrong or unreported (none of your events reports the line)."""

    kind: str
    message: str
    line_id: str | None = None
    event_id: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class SettlementVerdict:
    """The result of `verify_payout`. The sums are calculated again from the lines.

    `settled`: the ids of the events that this payout pays; pass those of earlier payouts to the next check. `waiting`: the
    events without a line so far, which a later payout must pay. `unproven`: lines that no event of an order can prove, such
    as reserves and adjustments.
    """

    problems: tuple[SettlementProblem, ...]
    gross: Decimal
    fees: Decimal
    net: Decimal
    settled: frozenset[str]
    waiting: tuple[str, ...]
    unproven: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """True if there is no problem."""
        return not self.problems


def verify_payout(
    payout: Payout,
    lines: Sequence[PayoutLine],
    events: Iterable[Event | Mapping[str, Any] | bytes | str],
    terms: Sequence[Terms],
    *,
    settled: Collection[str] | None = None,
) -> SettlementVerdict:
    """Check a payout without calling the service.

    `payout` is the result of `payout(id)`, `lines` those of `payout_lines(id)`, and `terms` those of `terms()`.
    `events` are the webhooks that you stored: raw bodies, parsed bodies, or Events. `settled` are the ids of the events
    that earlier payouts have paid, from the results of their checks. With `settled`, the check also finds events that
    were left out or paid twice.
    """
    if not payout.first_line_id:
        raise ValueError("payout is an entry of a list: use the result of payout(id), which has the totals.")
    received = [raw_of(event) for event in events]
    expected = expected_lines(received, terms)
    pairs = matched(lines, expected, settled)
    told = {pair.told for pair in pairs if pair.told is not None}
    paid = {line.event_id for line in told}
    problems = [*_numbering(payout, lines), *_sums(payout, lines), *_each(lines), *_reserves(lines, terms)]
    problems += _compared(pairs, received)
    problems += _left_out(expected, told, paid, settled)
    problems += _positions(pairs)
    known = paid | set(settled or ())
    return SettlementVerdict(
        problems=tuple(dict.fromkeys(problems)),
        gross=sum((line.gross for line in lines), Decimal("0.00")),
        fees=sum((line.fee for line in lines), Decimal("0.00")),
        net=sum((line.gross + line.fee for line in lines), Decimal("0.00")),
        settled=frozenset(paid),
        waiting=tuple(sorted({line.event_id for line in expected} - known)),
        unproven=tuple(line.line_id for line in lines if line.type not in MOVED),
    )


def _numbering(payout: Payout, lines: Sequence[PayoutLine]) -> Iterator[SettlementProblem]:
    """Lines are numbered without gaps, so their numbers reveal a missing or doubled line."""
    counts = Counter(line.line_id for line in lines)
    wanted = {str(number) for number in range(int(payout.first_line_id), int(payout.last_line_id) + 1)}
    for line_id in sorted(wanted - counts.keys(), key=int):
        yield SettlementProblem("missing", f"Line {line_id} is missing.", line_id)
    for line_id, count in counts.items():
        if line_id not in wanted:
            yield SettlementProblem("wrong", f"Line {line_id} does not belong to this payout.", line_id)
        if count > 1:
            yield SettlementProblem("doubled", f"Line {line_id} is there {count} times.", line_id)
    if payout.line_count != len(wanted):
        yield SettlementProblem(
            "wrong", f"The payout says {payout.line_count} lines, and its range has {len(wanted)}."
        )


def _sums(payout: Payout, lines: Sequence[PayoutLine]) -> Iterator[SettlementProblem]:
    net = sum((line.gross + line.fee for line in lines), Decimal(0))
    if net != payout.amount:
        yield SettlementProblem(
            "wrong", f"The lines sum to {net:.2f}, and the payout is {payout.amount:.2f}."
        )
    for name in sorted({"overall", *payout.totals, *(line.type for line in lines)}):
        of = [line for line in lines if name in {"overall", line.type}]
        ours = [
            len(of),
            *(sum((getattr(line, part) for line in of), Decimal(0)) for part in ("gross", "fee", "net")),
        ]
        given = payout.totals.get(name)
        theirs = [given.count, given.gross, given.fee, given.net] if given else [0, 0, 0, 0]
        if ours != theirs:
            only = of[0].line_id if len(of) == 1 and name != "overall" else None
            yield SettlementProblem(
                "wrong", f"The payout's total of {name} is not the sum of those lines.", only
            )


def _each(lines: Sequence[PayoutLine]) -> Iterator[SettlementProblem]:
    for line in lines:
        misplaced = line.gross if line.type in _FEES else line.fee
        if line.net != line.gross + line.fee or misplaced:
            yield SettlementProblem(
                "wrong", f"Line {line.line_id} ({line.type}): its amounts do not fit.", line.line_id
            )


def _compared(pairs: Iterable[MatchedLine], received: list[Mapping[str, Any]]) -> Iterator[SettlementProblem]:
    for pair in pairs:
        line, found = pair.line, pair.told
        name = f"Line {line.line_id} ({line.type} {line.reference})"
        if pair.repeats is not None:
            message = f"{name} repeats line {pair.repeats.line_id}."
            yield SettlementProblem("doubled", message, line.line_id)
            continue
        if found is None:
            gaps = ", ".join(_never_received(line.order_id, received)) or "an event after your last one"
            message = f"{name}: none of your events reports it. Never received: {gaps}."
            yield SettlementProblem("unreported", message, line.line_id)
            continue
        told, said = (found.gross + found.fee) / Decimal(100), line.gross + line.fee
        if (cents_of(line.gross), cents_of(line.fee)) != (found.gross, found.fee):
            message = (
                f"{name} is {said:.2f}, and must be {told:.2f} by event {found.event_id} and your terms."
            )
            yield SettlementProblem("wrong", message, line.line_id, found.event_id)
        if line.merchant_reference != found.merchant_reference:
            yield SettlementProblem(
                "wrong", f"{name} names another order reference.", line.line_id, found.event_id
            )


def _never_received(order_id: str, received: list[Mapping[str, Any]]) -> list[str]:
    """Return the ids of an order's events that are missing before the last received one.

    Events are numbered without gaps.
    """
    numbers = {int(event["sequence"]) for event in received if event.get("orderId") == order_id}
    name = order_id.replace("-", "")
    return [f"evt_{name}_{number}" for number in range(1, max(numbers, default=0)) if number not in numbers]


def _left_out(
    wanted: Sequence[ExpectedLine], here: Collection[ExpectedLine], paid: Collection[str],
    settled: Collection[str] | None,
) -> Iterator[SettlementProblem]:  # fmt: skip
    last: dict[str, int] = defaultdict(int)
    for line in wanted:
        if line.event_id in paid:
            last[line.order_id] = max(last[line.order_id], line.sequence)
    for line in wanted:
        name = f"{line.type} {line.reference} of event {line.event_id}"
        earlier = line.event_id in (settled or ())
        if line.event_id in paid and line not in here:
            yield SettlementProblem("missing", f"The line of {name} is missing.", None, line.event_id)
        elif line.event_id in paid and earlier:
            yield SettlementProblem(
                "doubled", f"The line of {name} was in an earlier payout.", None, line.event_id
            )
        # The lines of an order have the same sequence as its events, so an earlier event cannot be paid later.
        elif (
            settled is not None
            and not earlier
            and line.event_id not in paid
            and line.sequence < last[line.order_id]
        ):
            yield SettlementProblem("missing", f"The line of {name} is missing.", None, line.event_id)


def _positions(pairs: Iterable[MatchedLine]) -> Iterator[SettlementProblem]:
    """The lines of one event have one position in the feed, and the positions of an order's events increase."""
    places = sorted(
        ((pair.told, pair.line) for pair in pairs if pair.told is not None),
        key=lambda pair: (pair[0].order_id, pair[0].sequence, int(pair[1].line_id)),
    )
    for (before, first), (after, second) in pairwise(places):
        if before.order_id != after.order_id:
            continue
        same = before.event_id == after.event_id
        at, then = first.sequence, second.sequence
        if at is None or then is None or (at != then if same else at >= then):
            message = (
                f"Line {second.line_id} has the position {then}, which does not fit line {first.line_id}."
            )
            yield SettlementProblem("wrong", message, second.line_id, after.event_id)


def _reserves(lines: Sequence[PayoutLine], versions: Sequence[Terms]) -> Iterator[SettlementProblem]:
    """Check the reserves: each is a percentage of captures minus refunds and lost disputes since the previous reserve."""
    moved, last = 0, None
    for line in sorted(lines, key=lambda line: int(line.line_id)):
        if line.type in {"capture", "refund", "dispute_lost"}:
            moved, last = moved + cents_of(line.gross), line.at
        if line.type == "reserve_held":
            valid = _at_cutoff(versions, last, line.at)
            right = {-share(max(moved, 0), cents_of(terms.reserve), WHOLE) for terms in valid}
            if cents_of(line.gross) not in right:
                message = f"Line {line.line_id} (reserve_held) is not the percentage of your terms."
                yield SettlementProblem("wrong", message, line.line_id)
            moved = 0


def _at_cutoff(versions: Sequence[Terms], last: datetime | None, closed: datetime | None) -> list[Terms]:
    """Return the versions that may have been valid at the cutoff of a batch. It was after the batch's last movement, and before its end.

    A batch normally ends within minutes after its cutoff, but later if the service was stopped.
    """
    if closed is None:
        return []
    begin = min(closed - _DAY, last or closed)
    first = in_force(versions, begin)
    later = [terms for terms in versions if begin < terms.valid_from <= closed]
    return later if first is None else [first, *later]
