"""Replays an order's plan along its ledger and its changes, and compares it with the plan that is stored.

Every write-off, reversal and recovery is compared with the plan at that moment, and the final amounts with the stored plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cuota.core.installment import Installment, cut, lost, schedule
from cuota.core.installment import total as total_of
from cuota.core.ledger import Transfer
from cuota.core.plan.change import PlanChange, planned

_GIVEN_BACK = ("void", "expiry", "refund", "dispute_lost")
_POSTINGS = ("write_off", "write_off_reversed", "recovery")
_SOME_TIME = datetime.min.replace(tzinfo=UTC)


def disagreements(
    facts: dict[str, Any], changes: Sequence[PlanChange], ledger: Sequence[Transfer]
) -> Iterator[tuple[str, str]]:
    """Yield every row that differs, as (row, problem). The ledger's order is the order in which everything happened."""
    stored = [Installment(*row) for row in facts["plan"]]
    marked = sorted(
        (item for item in stored if item.written_off_at is not None),
        key=lambda item: (item.written_off_at, item.number),
    )
    if not facts["first_day"] or not stored:
        return
    for item in marked:
        assert item.written_off_at is not None
        if item.written_off_at.date() <= item.due_on:
            yield (
                f"installments {item.number}",
                f"was written off on {item.written_off_at}, but is due on {item.due_on}",
            )
    if any(each.posting == "chargeback" for each in ledger):
        return  # a chargeback takes a payment out of the middle of the plan; rules.py still checks the balances
    replay = _Replay(facts, changes, [item.number for item in marked])
    yield from replay.run(ledger)
    yield from replay.compare(stored)


class _Replay:
    """The plan as it was at one moment. `whole` is False after the ledger contradicted the order's totals, which another rule reports."""

    def __init__(self, facts: dict[str, Any], changes: Sequence[PlanChange], marked: list[int]) -> None:
        self.plan = schedule(facts["amount"], facts["fee"], facts["first_day"])
        self.charged: dict[UUID, int] = {charge_id: number for charge_id, number, *_ in facts["charged"]}
        self.changes = list(changes)
        self.marked = marked
        self.whole = True

    def run(self, ledger: Sequence[Transfer]) -> Iterator[tuple[str, str]]:
        """Replay the ledger, and each change at its place."""
        sums: dict[UUID, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        first: dict[UUID, int] = {}
        for number, transfer in enumerate(ledger):
            first.setdefault(transfer.cause, number)
            sums[transfer.cause][transfer.posting] += transfer.amount
        for cause, found in sums.items():
            yield from self._changed(first[cause])
            expected = self._expected(cause, found)
            if not self.whole:
                return
            for name, cents in expected.items():
                if found[name] != cents:
                    yield f"transfers {name} {cause}", f"is {found[name]}, the plan says {cents}"
        yield from self._changed(len(ledger))
        for number in self.marked:
            yield f"installments {number}", "is written off, but the ledger posts no write-off"

    def _expected(self, cause: UUID, found: dict[str, int]) -> dict[str, int]:
        """Return what the ledger must say about write-offs for this cause, and change the plan by the cause."""
        before, expected = list(self.plan), dict.fromkeys(_POSTINGS, 0)
        given_back = sum(found[name] for name in _GIVEN_BACK)
        if found["write_off"] and self.marked:
            item = self.plan[self.marked.pop(0) - 1]
            expected["write_off"] = 0 if item.paid else item.total
            self.plan[item.number - 1] = replace(item, written_off_at=_SOME_TIME)
        elif found["installment_paid"] and 0 < self.charged.get(cause, 0) <= len(self.plan):
            item = self.plan[self.charged[cause] - 1]
            expected["recovery"] = lost([item])
            self.plan[item.number - 1] = replace(item, charge_id=cause)
        elif given_back:
            if given_back > total_of(self.plan) or found["fee_returned"] > sum(
                item.fee for item in self.plan
            ):
                self.whole = False  # the order's totals disagree, which another rule reports
                return expected
            self.plan = list(cut(self.plan, given_back, found["fee_returned"]).plan)
            expected["write_off_reversed"] = lost(before) - lost(self.plan)
        return expected

    def _changed(self, transfers: int) -> Iterator[tuple[str, str]]:
        """Apply the changes that were made when the ledger had at most this many rows."""
        while self.changes and self.changes[0].transfers <= transfers:
            change = self.changes.pop(0)
            amounts = [(each.number, each.amount, each.fee) for each in planned(self.plan)]
            if amounts != [(each.number, each.amount, each.fee) for each in change.before]:
                yield (
                    f"plan_changes {change.number}",
                    f"begins with {_shown(change.before)}, the ledger says {_shown(planned(self.plan))}",
                )
            known = {item.number: item for item in self.plan}
            self.plan = [
                replace(known.get(each.number, Installment(*each)), due_on=each.due_on, amount=each.amount, fee=each.fee)
                for each in change.after
            ]  # fmt: skip

    def compare(self, stored: Sequence[Installment]) -> Iterator[tuple[str, str]]:
        """Compare each installment's amounts with the replayed plan."""
        if not self.whole or len(stored) != len(self.plan):
            return
        for item, expected in zip(stored, self.plan, strict=True):
            if (item.amount, item.fee) != (expected.amount, expected.fee):
                yield (
                    f"installments {item.number}",
                    f"is {item.amount} and {item.fee} in fees, the ledger says {expected.amount} and {expected.fee}",
                )


def _shown(payments: Sequence[tuple[int, object, int, int]]) -> str:
    return ", ".join(f"{number}: {amount}+{fee}" for number, _, amount, fee in payments)
