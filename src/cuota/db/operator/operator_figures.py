"""Counts and sums of the operator's work over all merchants, for the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from cuota.db.desk.webhooks import PARKED_FOR
from cuota.db.session import Session

# The index contains only installments that are overdue and not written off. Amounts are in cents.
_AGING = """SELECT CASE WHEN due_on > $1::date - 8 THEN 1 WHEN due_on > $1::date - 31 THEN 2 WHEN due_on > $1::date - 61 THEN 3
        WHEN due_on > $1::date - 91 THEN 4 ELSE 5 END AS bucket, count(*) AS installments, sum(amount + fee) AS amount
    FROM installments WHERE due_on < $1::date AND failures > 0 AND charge_id IS NULL AND written_off_at IS NULL GROUP BY 1"""
# The texts of the buckets, by their number.
BUCKETS = {
    1: "1 to 7 days",
    2: "8 to 30 days",
    3: "31 to 60 days",
    4: "61 to 90 days",
    5: "more than 90 days",
}
_WAITING = """SELECT count(*) AS waiting, count(*) FILTER (WHERE failed > 0) AS failing, min(try_at) AS since FROM deliveries
    WHERE state = 'pending'"""
_PARKED = "SELECT count(*) AS parked FROM deliveries WHERE state = 'parked' AND settled_at > $1"
_TO_DECIDE = """SELECT count(*) AS disputes, min(opened_at) AS since FROM disputes
    WHERE kind = 'dispute' AND status IN ('under_review', 'appealed')"""
_MESSAGES = """SELECT kind, state, reason, created_at, settled_at FROM messages WHERE merchant_id = $1 AND order_id = $2
    ORDER BY created_at, message_id LIMIT 200"""
_ADD_RUN = "INSERT INTO verify_runs (run_id, at, orders, transfers, problems) VALUES ($1, $2, $3, $4, $5)"
_RUNS = "SELECT at, orders, transfers, problems FROM verify_runs ORDER BY run_id DESC LIMIT $1"


@dataclass(frozen=True, slots=True)
class AgingBucket:
    """The overdue installments of one age. The amount is in cents."""

    label: str
    installments: int
    amount: int


@dataclass(frozen=True, slots=True)
class DeliveryBacklog:
    """The waiting webhooks.

    `failing` counts those that have already failed. `since` is the earliest time at which one is due. `parked` counts those whose last
    attempt failed lately, or whose endpoint was removed with them: after an outage of the service's own network, those of all merchants.
    """

    waiting: int
    failing: int
    since: datetime | None
    parked: int


@dataclass(frozen=True, slots=True)
class VerifyRun:
    """One run of `cuota verify`. `problems` is the number of rows that disagree."""

    at: datetime
    orders: int
    transfers: int
    problems: int


async def aging(session: Session, today: date) -> list[AgingBucket]:
    """Return the overdue amounts that are not written off, by age."""
    found = {row["bucket"]: row for row in await session.fetch(_AGING, today)}
    return [
        AgingBucket(label, row["installments"], int(row["amount"])) if (row := found.get(number)) else AgingBucket(label, 0, 0)
        for number, label in BUCKETS.items()
    ]  # fmt: skip


async def backlog(session: Session, now: datetime) -> DeliveryBacklog:
    """Return how many webhooks of all merchants wait, and how many were parked within the time for which the dashboard lists them."""
    row = await session.fetchrow(_WAITING)
    parked = await session.fetchrow(_PARKED, now - PARKED_FOR)
    assert row is not None
    assert parked is not None
    return DeliveryBacklog(row["waiting"], row["failing"], row["since"], parked["parked"])


async def to_decide(session: Session) -> tuple[int, datetime | None]:
    """Return how many disputes wait for the operator's decision, and when the oldest of them was opened."""
    row = await session.fetchrow(_TO_DECIDE)
    return (row["disputes"], row["since"]) if row else (0, None)


async def add_run(session: Session, run_id: UUID, run: VerifyRun) -> None:
    """Store the result of a run of `cuota verify`."""
    await session.fetchrow(_ADD_RUN, run_id, run.at, run.orders, run.transfers, run.problems)


async def runs(session: Session, limit: int) -> list[VerifyRun]:
    """Return the newest runs of `cuota verify`."""
    return [VerifyRun(*row) for row in await session.fetch(_RUNS, limit)]


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message to a consumer. `state` is pending, sent or failed; `reason` says why a message failed."""

    kind: str
    state: str
    reason: str | None
    created_at: datetime
    settled_at: datetime | None


async def messages(session: Session, merchant_id: UUID, order_id: UUID) -> list[SentMessage]:
    """Return the messages to the consumer about an order, the earliest first."""
    return [SentMessage(*row) for row in await session.fetch(_MESSAGES, merchant_id, order_id)]
