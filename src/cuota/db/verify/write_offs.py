"""Replays an order's plan along its ledger, and compares every write-off, reversal and recovery with it."""

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

_GIVEN_BACK = ("void", "expiry", "refund", "dispute_lost")
_POSTINGS = ("write_off", "write_off_reversed", "recovery")
_SOME_TIME = datetime.min.replace(tzinfo=UTC)


def disagreements(facts: dict[str, Any], ledger: Sequence[Transfer]) -> Iterator[tuple[str, str]]:
    """Yield every write-off that differs, as (row, problem). The ledger's order is the order in which everything happened."""
    marked = sorted(
        (item for item in (Installment(*row) for row in facts["plan"]) if item.written_off_at is not None),
        key=lambda item: (item.written_off_at, item.number),
    )
    if not facts["first_day"] or not (marked or any(each.posting in _POSTINGS for each in ledger)):
        return
    for item in marked:
        assert item.written_off_at is not None
        if item.written_off_at.date() <= item.due_on:
            yield (
                f"installments {item.number}",
                f"was written off on {item.written_off_at}, but is due on {item.due_on}",
            )
    if any(each.posting == "chargeback" for each in ledger):
        return  # a chargeback removes a payment from the middle of the plan; the balances above must still agree
    yield from _replayed(facts, ledger, [item.number for item in marked])


def _replayed(
    facts: dict[str, Any], ledger: Sequence[Transfer], marked: list[int]
) -> Iterator[tuple[str, str]]:
    plan = schedule(facts["amount"], facts["fee"], facts["first_day"])
    charged = {charge_id: number for charge_id, number, *_ in facts["charged"]}
    sums: dict[UUID, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for transfer in ledger:
        sums[transfer.cause][transfer.posting] += transfer.amount
    for cause, found in sums.items():
        before, expected = list(plan), dict.fromkeys(_POSTINGS, 0)
        given_back = sum(found[name] for name in _GIVEN_BACK)
        if found["write_off"] and marked:
            item = plan[marked.pop(0) - 1]
            expected["write_off"] = 0 if item.paid else item.total
            plan[item.number - 1] = replace(item, written_off_at=_SOME_TIME)
        elif found["installment_paid"] and cause in charged:
            item = plan[charged[cause] - 1]
            expected["recovery"] = lost([item])
            plan[item.number - 1] = replace(item, charge_id=cause)
        elif given_back:
            if given_back > total_of(plan) or found["fee_returned"] > sum(item.fee for item in plan):
                return  # the order's totals disagree, which another rule has named
            plan = list(cut(plan, given_back, found["fee_returned"]).plan)
            expected["write_off_reversed"] = lost(before) - lost(plan)
        for name, cents in expected.items():
            if found[name] != cents:
                yield f"transfers {name} {cause}", f"is {found[name]}, the plan says {cents}"
    for number in marked:
        yield f"installments {number}", "is written off, but the ledger posts no write-off"
