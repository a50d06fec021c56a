"""Compares the answers that clients got with the database, and the database with itself.

A problem is a sentence that names the order. `settled` means that every client has finished: then an operation
without an answer must not be in the database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from support.faults.journal import Story
from support.faults.snapshot import Facts, Snapshot

Found = Iterator[str]
Arrived = Collection[tuple[str, int]]
MOVES = ("capture", "void", "refund")
# The changes that the harness itself made before the clients began.
OWN = "harness"


def problems(
    stories: Sequence[Story],
    seen: Snapshot,
    intended: Sequence[Story],
    *,
    settled: bool,
    arrived: Arrived | None = None,
) -> list[str]:
    """Return all problems. `stories` were read before the snapshot was taken, `intended` after it.

    `arrived` is what the receiver had received by then, by order and sequence.
    """
    return [
        *(f"order {facts.order}: {problem}" for facts in seen.orders.values() for problem in _order(facts)),
        *_acknowledged(stories, seen),
        *_nothing_else(intended, seen, settled=settled),
        *_created(stories, seen, settled=settled),
        *_strangers(stories),
        *seen.cards,
        *(_marked(seen, arrived) if arrived is not None else ()),
    ]


def _order(facts: Facts) -> Found:
    """Check one order with itself: totals, ledger, plan, events, keys."""
    sums = Counter[str]()
    for kind, _, amount in facts.movements:
        sums[kind] += amount
    posted = {posting: total for posting, total, _, _ in facts.ledger}
    for kind, total in (("capture", facts.captured), ("void", facts.voided), ("refund", facts.refunded)):
        if sums[kind] != total:
            yield f"{kind}s are {sums[kind]}, the order says {total}"
        if posted.get(kind, 0) != total:
            yield f"the ledger holds {posted.get(kind, 0)} of {kind}s, the order says {total}"
    if facts.captured + facts.voided > facts.amount or facts.refunded > facts.captured:
        yield f"over the limit: captured {facts.captured}, voided {facts.voided}, refunded {facts.refunded} of {facts.amount}"
    if (rows := sum(count for *_, count, _ in facts.ledger)) != facts.transfers:
        yield f"{rows} rows in the ledger, the order counts {facts.transfers}"
    yield from (f"key applied {n} times: {key}" for key, n in facts.applied.items() if n > 1)
    yield from _told(facts)
    yield from _plan(facts)


def _told(facts: Facts) -> Found:
    """Check that each change has one event, and that events have no gaps."""
    numbers = [number for number, *_ in facts.told]
    if numbers != list(range(1, facts.events + 1)):
        yield f"events are numbered {numbers[:50]}, the order counts {facts.events}"
    completed: Counter[tuple[str, str | None, int]] = Counter(
        (name.removesuffix(".completed"), reference, amount)
        for _, name, reference, amount, _ in facts.told
        if name.endswith(".completed")
    )
    moved: Counter[tuple[str, str | None, int]] = Counter(facts.movements)
    for change in moved.keys() | completed.keys():
        if moved[change] != completed[change]:
            yield f"{change}: {moved[change]} movements, {completed[change]} events"


def _plan(facts: Facts) -> Found:
    """Compute the expected plan: four equal parts, minus what was given back, taken from the end."""
    if facts.status != "Approved":
        return
    each, extra = divmod(facts.amount, 4)
    expected = [each + (number < extra) for number in range(4)]
    left = facts.voided + facts.refunded
    for number in (3, 2, 1, 0):
        less = min(expected[number], left)
        expected[number] -= less
        left -= less
    if [amount for _, amount, _ in facts.plan] != expected:
        yield f"the plan is {[amount for _, amount, _ in facts.plan]}, not {expected}"


def _acknowledged(stories: Sequence[Story], seen: Snapshot) -> Found:
    """Check that every acknowledged operation exists as it was answered, and so does the original of each duplicate."""
    applied = Counter[tuple[str, str, str]]()
    for story in stories:
        intent, told = story.intent, story.told
        if intent.operation not in MOVES or told is None:
            continue
        key = (intent.order, intent.operation, intent.reference)
        applied[key] += told.result == "applied"
        if applied[key] > 1:
            yield f"intent {intent.number}: {key} was answered 200 more than once"
        if told.result in {"applied", "repeated", "taken"}:
            row = (intent.operation, intent.reference, told.amount)
            if intent.order not in seen.orders or row not in seen.orders[intent.order].rows:
                yield f"intent {intent.number}: answered {told.result} {row}, but the database has no such movement"
            if told.result in {"applied", "repeated"} and told.amount != intent.amount:
                yield f"intent {intent.number}: requested {intent.amount}, answered {told.amount}"


def _nothing_else(stories: Sequence[Story], seen: Snapshot, *, settled: bool) -> Found:
    """Check that nothing exists that was refused, postponed or never requested."""
    may: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for story in stories:
        intent, told = story.intent, story.told
        undecided = told is None and not settled
        if undecided or (told is not None and told.result in {"applied", "repeated"}):
            may[intent.order, intent.operation, intent.reference].add(intent.amount)
    for facts in seen.orders.values():
        for kind, reference, amount in facts.movements:
            if reference != OWN and amount not in may[facts.order, kind, reference]:
                yield f"order {facts.order}: {kind} {reference} of {amount} is in the database, but no client got an answer that says so"


def _created(stories: Sequence[Story], seen: Snapshot, *, settled: bool) -> Found:
    """Check that every created order exists once, with its amount."""
    by_reference: dict[tuple[str, str | None], list[Facts]] = defaultdict(list)
    for facts in seen.orders.values():
        by_reference[facts.merchant, facts.reference].append(facts)
    for story in stories:
        intent, told = story.intent, story.told
        if intent.operation != "create":
            continue
        found = by_reference[intent.merchant, intent.reference]
        if len(found) > 1:
            yield f"intent {intent.number}: requested one order, but the database has {len(found)}"
        if told is not None and told.result == "applied":
            rows = [(facts.order, facts.amount) for facts in found]
            if (told.order, intent.amount) not in rows:
                yield f"intent {intent.number}: answered order {told.order} of {intent.amount}, but the database has {rows}"
        elif found and settled:
            yield f"intent {intent.number}: an order is in the database, but no client got an answer that says so"


def _strangers(stories: Sequence[Story]) -> Found:
    """Check that exactly the right operations were refused, for the right reason."""
    reasons = {"not theirs": "order_not_found", "over the limit": "capture_exceeds_authorized"}
    lawful = {"capture_exceeds_authorized", "void_exceeds_uncaptured", "refund_exceeds_captured"}
    for story in stories:
        intent, told = story.intent, story.told
        if told is None or told.result == "put off":
            continue
        if intent.wrong and (told.result, told.code) != ("refused", reasons[intent.wrong]):
            yield f"intent {intent.number} ({intent.wrong}): answered {told.result} {told.code}"
        if not intent.wrong and told.result == "refused" and told.code not in lawful:
            yield f"intent {intent.number} ({intent.operation}): refused as {told.code}"


def _marked(seen: Snapshot, arrived: Arrived) -> Found:
    """Check that no event is recorded as delivered that the receiver never got."""
    for facts in seen.orders.values():
        for sequence, _ in facts.delivered:
            if (facts.order, sequence) not in arrived:
                yield f"order {facts.order}: event {sequence} is marked delivered, but never arrived"


def unanswered(stories: Sequence[Story]) -> list[str]:
    """Return the operations without a definite answer."""
    return [
        f"intent {story.intent.number} ({story.intent.operation}): no definite answer"
        for story in stories
        if story.told is None
    ]


def late(seen: Snapshot, first_arrivals: dict[str, list[int]]) -> list[str]:
    """Return the orders whose events have not all arrived, or whose first arrivals were out of order."""
    return [
        f"order {facts.order}: of {facts.events} events arrived {first_arrivals.get(facts.order, [])[:60]}"
        for facts in seen.orders.values()
        if first_arrivals.get(facts.order, []) != list(range(1, facts.events + 1))
    ]
