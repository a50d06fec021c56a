"""What an order's events must say. The settlement, the merchant and the feed learn of a change only by its event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from cuota.core.order.event import EVENT_TYPES, FINAL_STATUS, MOVED
from cuota.db.verify.dispute_rules import StoredDispute

_SUCCESS = {each.name: each.success for each in EVENT_TYPES}


def disagreements(facts: dict[str, Any], disputes: list[StoredDispute]) -> Iterator[tuple[str, str]]:
    """Yield every event that differs from the change that it reports, and every change without its event, as (row, problem)."""
    yield from _said(facts)
    yield from _movements(facts)
    yield from _disputes(facts, disputes)
    final = [FINAL_STATUS[name].value for name, *_ in facts["told"] if name in FINAL_STATUS]
    if final != ([] if facts["status"] == "Created" else [facts["status"]]):
        yield "events", f"say that the order became {', '.join(final) or 'nothing'}, it is {facts['status']}"


def _said(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the amount of each event, and whether it says that its operation was done."""
    moved = {(kind, reference): amount for kind, reference, _, amount in facts["moved"]}
    for number, (name, reference, amount, success) in enumerate(facts["told"], start=1):
        expected = amount
        if name.startswith("order."):
            expected = facts["amount"]
        elif name in MOVED:
            expected = moved.get((MOVED[name], reference), 0)
        if amount != expected:
            yield f"events {number}", f"{name} says {amount}, it was {expected}"
        if success != _SUCCESS.get(name, success):
            yield f"events {number}", f"{name} says that its success is {success}"


def _movements(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Check that each movement has one event. A capture or refund without one never reaches a payout."""
    told = Counter((MOVED[name].value, reference) for name, reference, *_ in facts["told"] if name in MOVED)
    for kind, reference, *_ in facts["moved"]:
        if (times := told[kind, reference]) != 1:
            yield f"movements {kind} {reference}", f"is reported by {times} events"


def _disputes(facts: dict[str, Any], disputes: list[StoredDispute]) -> Iterator[tuple[str, str]]:
    """Check that each dispute has one event about its opening, and one about its end after the end."""
    told = Counter((name, reference) for name, reference, *_ in facts["told"])
    for each in disputes:
        for name, expected in (("dispute.opened", 1), ("dispute.closed", int(each.status == "closed"))):
            if (times := told[name, str(each.dispute_id)]) != expected:
                yield f"disputes {each.dispute_id}", f"has {times} events {name}, expected {expected}"
