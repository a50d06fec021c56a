"""Pairs each line of a payout with the line that an event requires."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cuota.client.settled import PayoutLine
from cuota.client.settlement_cents import cents_of
from cuota.client.settlement_events import ExpectedLine

# The types of lines that events of orders require.
MOVED = frozenset(
    {"capture", "refund", "fee", "fee_returned", "dispute_withheld", "dispute_released", "dispute_lost"}
)


@dataclass(frozen=True)
class MatchedLine:
    """A line with its expected line, which is None if no event reports the line.

    `repeats` is set if the line is a duplicate.
    """

    line: PayoutLine
    told: ExpectedLine | None
    repeats: PayoutLine | None = None


def matched(
    lines: Iterable[PayoutLine], expected: Iterable[ExpectedLine], settled: Collection[str] | None
) -> list[MatchedLine]:
    """Pair the lines of the types in MOVED by type, order and reference.

    A dispute can have several lines with the same three values. Such lines are paired in their order.
    """
    told = defaultdict(list)
    for each in sorted(expected, key=lambda each: each.sequence):
        told[each.key].append(each)
    groups: dict[tuple[str, str, str], dict[str, PayoutLine]] = defaultdict(dict)
    for line in lines:
        if line.type in MOVED:
            groups[line.type, line.order_id, line.reference].setdefault(line.line_id, line)
    return [
        pair
        for key, group in groups.items()
        for pair in _pairs(sorted(group.values(), key=_number), told[key], settled or ())
    ]


def _pairs(
    lines: Sequence[PayoutLine], told: Sequence[ExpectedLine], settled: Collection[str]
) -> Iterator[MatchedLine]:
    new = [each for each in told if each.event_id not in settled]
    if len(new) == len(lines):
        yield from (MatchedLine(line, each) for line, each in zip(lines, new, strict=True))
        return
    free = list(told)
    for line in lines:
        amounts = cents_of(line.gross), cents_of(line.fee)
        found = min(
            free,
            key=lambda each: (each.event_id in settled, (each.gross, each.fee) != amounts, each.sequence),
            default=None,
        )
        if found is not None:
            free.remove(found)
        yield MatchedLine(line, found, lines[0] if found is None and line is not lines[0] else None)


def _number(line: PayoutLine) -> int:
    return int(line.line_id)
