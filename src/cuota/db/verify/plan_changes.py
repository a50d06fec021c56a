"""Checks the changes of a plan for a consumer in hardship: each against the plan before it, its own numbers, its text and the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from cuota.core.installment import schedule
from cuota.core.ledger import Transfer
from cuota.core.plan.change import ChangeKind, PlanChange, PlannedPayment, planned
from cuota.core.plan.change_words import hash_of


def disagreements(
    facts: dict[str, Any], changes: Sequence[PlanChange], ledger: Sequence[Transfer]
) -> Iterator[tuple[str, str]]:
    """Yield every change that differs, as (row, problem)."""
    if not changes or not facts["first_day"]:
        return
    may_wait = bool(facts["disputes"] or facts["held_returns"])
    agreed = planned(schedule(facts["amount"], facts["fee"], facts["first_day"]))
    for number, change in enumerate(changes, start=1):
        row = f"plan_changes {change.number}"
        if change.number != number:
            yield row, f"should have number {number}"
        for problem in _before(change, agreed, may_wait=may_wait):
            yield row, problem
        for problem in _numbers(change, ZoneInfo(facts["time_zone"])):
            yield row, problem
        posted = sum(t.amount for t in ledger if t.cause == change.change_id and t.posting == "fee_waived")
        if posted != change.waived:
            yield row, f"waives {change.waived}, the ledger says {posted}"
        if change.text and hash_of(change.text) != change.text_hash:
            yield row, "its text does not have the hash that was stored"
        if not change.text and not facts["erased"]:
            yield row, "its text is missing"
        agreed = change.after


def _before(change: PlanChange, agreed: Sequence[PlannedPayment], *, may_wait: bool) -> Iterator[str]:
    """Check the days of the plan before the change. The amounts are checked along the ledger (plan_replay.py)."""
    if len(change.before) != len(agreed):
        yield f"begins with {len(change.before)} installments, there were {len(agreed)}"
    for before, was in zip(change.before, agreed, strict=False):
        if before.due_on < was.due_on or (before.due_on > was.due_on and not may_wait):
            yield f"says that installment {before.number} was due on {before.due_on}, it was {was.due_on}"


def _numbers(change: PlanChange, zone: ZoneInfo) -> Iterator[str]:
    """Check that the plan before and after differ by what the change says."""
    before, after = change.before, change.after
    amounts = sum(each.amount for each in before), sum(each.amount for each in after)
    if amounts[0] != amounts[1]:
        yield f"changes the sum from {amounts[0]} to {amounts[1]}"
    waived = sum(each.fee for each in before) - sum(each.fee for each in after)
    if waived != change.waived:
        yield f"says that {change.waived} is waived, the fees differ by {waived}"
    if [each.number for each in after] != list(range(1, len(after) + 1)):
        yield f"has the numbers {[each.number for each in after]}"
    if change.kind is not ChangeKind.SMALLER_PAYMENTS and any(
        new.due_on < old.due_on for old, new in zip(before, after, strict=False)
    ):
        yield "moves a payment to an earlier day"
    if (days := _days(change, zone)) != change.days:
        yield f"says {change.days} days, the plan says {days}"
    if change.kind is not ChangeKind.SMALLER_PAYMENTS:
        kept = [(each.number, each.amount) for each in before] == [
            (each.number, each.amount) for each in after
        ]
        if not kept:
            yield "changes amounts"


def _days(change: PlanChange, zone: ZoneInfo) -> int:
    """Return the days that the change should have, by the plan before and after it."""
    on = change.changed_at.astimezone(zone).date()
    known = {each.number: each for each in change.before}
    changed = [each for each in change.after if known.get(each.number) != each]
    was = [known[each.number].due_on for each in changed if each.number in known and known[each.number].total]
    if change.kind is ChangeKind.FEE_WAIVED or not was:
        return 0
    if change.kind is ChangeKind.DATES_MOVED:
        return max((new.due_on - max(old, on)).days for old, new in zip(was, changed, strict=False))
    # A pause, and smaller payments: from the payment that was due first, or from the day of the change if it was late.
    return (min(each.due_on for each in changed) - max(min(was), on)).days
