"""The rules that an order's disputes, the order and its ledger must satisfy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from cuota.core.dispute.dispute import next_work_at
from cuota.core.ledger import Transfer


class StoredDispute(NamedTuple):
    """A dispute as `cuota verify` reads it. Amounts are cents."""

    dispute_id: UUID
    kind: str
    status: str
    amount: int
    withheld: int
    outcome: str | None
    movement_id: UUID | None
    release_id: UUID | None
    charge_id: UUID | None
    respond_by: datetime
    reminded: bool
    appeal_by: datetime | None
    due_at: datetime | None

    @property
    def is_chargeback(self) -> bool:
        """True if the card network took the money back."""
        return self.kind == "chargeback"


def disputes_of(facts: dict[str, Any]) -> list[StoredDispute]:
    """Return the order's disputes."""
    return [StoredDispute(*row) for row in facts["disputes"]]


def causes(disputes: list[StoredDispute]) -> set[UUID]:
    """Return every cause that ledger rows of disputes may have."""
    named = {cause for each in disputes for cause in (each.dispute_id, each.movement_id, each.release_id)}
    return {cause for cause in named if cause is not None}


def taken_back(disputes: list[StoredDispute]) -> int:
    """Return the cents that card networks took back and did not return."""
    return sum(each.amount for each in disputes if each.is_chargeback and each.outcome != "won")


def undecided(disputes: list[StoredDispute]) -> int:
    """Return the amount of the chargebacks that are not decided, in cents."""
    return sum(each.amount for each in disputes if each.is_chargeback and each.status != "closed")


def returned_by_networks(disputes: list[StoredDispute], ledger: list[Transfer]) -> Counter[UUID]:
    """Return the cents of each charge that lost chargebacks returned, without the part that Cuota bears beyond the plan."""
    parts = Counter[UUID]()
    for each in disputes:
        if each.is_chargeback and each.outcome == "lost" and each.charge_id is not None:
            own = [t for t in ledger if t.cause == each.movement_id and t.posting == "chargeback_loss"]
            parts[each.charge_id] += each.amount - sum(t.amount for t in own)
    return parts


def disagreements(
    facts: dict[str, Any], disputes: list[StoredDispute], ledger: list[Transfer]
) -> Iterator[tuple[str, str]]:
    """Yield every row about the order's disputes that differs, as (row, problem)."""
    unclosed = [each for each in disputes if each.status != "closed"]
    expected = {
        "disputed": sum(each.withheld for each in unclosed if not each.is_chargeback),
        "charged_back": sum(each.withheld for each in unclosed if each.is_chargeback),
        "open_disputes": len(unclosed),
        "open_chargebacks": sum(each.is_chargeback for each in unclosed),
    }
    for name, said in expected.items():
        if facts[name] != said:
            yield f"orders.{name}", f"is {facts[name]}, its disputes say {said}"
    if (facts["paused_at"] is not None) != bool(unclosed):
        yield "orders.paused_at", f"is {facts['paused_at']}, but {len(unclosed)} disputes are open"
    sums = Counter[tuple[UUID, str]]()
    for transfer in ledger:
        sums[transfer.cause, transfer.posting] += transfer.amount
    for each in disputes:
        for posting, amount in _expected(each).items():
            found = sums[each.dispute_id, posting]
            if found != amount:
                yield f"disputes {each.dispute_id}", f"{posting} should be {amount}, the ledger says {found}"
        yield from _ending(each)
        won = each.amount if each.outcome == "won" and each.is_chargeback else 0
        if each.release_id is not None and sums[each.release_id, "chargeback_reversed"] != won:
            yield f"disputes {each.dispute_id}", f"won {won}, the ledger says otherwise"


def _ending(dispute: StoredDispute) -> Iterator[tuple[str, str]]:
    """Check that a job finds the dispute in time, and that its outcome is the one by which its money moved."""
    name = f"disputes {dispute.dispute_id}"
    due = next_work_at(
        dispute.status, dispute.kind, dispute.respond_by, dispute.appeal_by, reminded=dispute.reminded
    )
    # An earlier time is harmless.
    if due is not None and (dispute.due_at is None or dispute.due_at > due):
        yield name, f"its next work is at {dispute.due_at}, it is due at {due}"
    if (dispute.outcome == "lost") != (dispute.movement_id is not None):
        yield name, f"its outcome is {dispute.outcome}, its refund is {dispute.movement_id}"
    if dispute.outcome in {"won", "withdrawn"} and dispute.release_id is None:
        yield name, f"its outcome is {dispute.outcome}, but nothing was released"


def _expected(dispute: StoredDispute) -> dict[str, int]:
    """Return the postings that the ledger must have for the opening of the dispute.

    A chargeback may withhold less than its amount.
    """
    if dispute.is_chargeback:
        return {"chargeback": dispute.amount}
    return {"chargeback": 0, "dispute_withheld": dispute.amount}
