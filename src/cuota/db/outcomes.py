"""The only writer of money: one outcome, one statement, one transaction, one round trip.

The statement begins with the order, where its version is still the one that was read; every other part takes its
rows from that one, so a stale outcome writes nothing at all. Behind it stand unique keys and CHECK constraints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import asyncpg

from cuota.core.event import Event
from cuota.core.order import Order
from cuota.core.outcome import Outcome
from cuota.core.start import Start
from cuota.db import decided_parts
from cuota.db import outcome_parts as parts
from cuota.db.orders import Session
from cuota.db.outcome_parts import Part


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to keep with the money for its Idempotency-Key. Saved only while the lease is still held."""

    key: str
    lease: UUID
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class NewOrder:
    """A new order with its first events and what never changes about it: token, merchantReference, JSON document."""

    order: Order
    token: UUID
    reference: str
    document: str
    events: tuple[Event, ...]
    start: Start | None = None


_OPTIONAL: tuple[tuple[str, Callable[[Outcome], Part]], ...] = (
    ("plan", parts.plan),
    ("charge", parts.charge),
    ("charge_settled", parts.charge_settled),
    ("movement", parts.movement),
    ("installments", parts.installments),
    ("transfers", parts.transfers),
    ("events", parts.events_of),
    ("events", parts.outbox),
    ("card_refunds", parts.card_refunds),
    ("card_refund_settled", parts.card_refund_settled),
    ("decision", decided_parts.decision),
    ("decision", decided_parts.signals),
    ("notices", parts.notices),
    ("plan_card", parts.plan_card),
)


async def save(session: Session, outcome: Outcome, answer: Answer | None = None) -> bool:
    """Write an outcome. True: all of it is durable. False: the order changed meanwhile and nothing was written.

    Never cancelled once sent: a caller that goes away changes nothing.
    """
    guarded = decided_parts.is_guarded(outcome)
    changed = parts.changed(outcome, leased=answer is not None, guarded=guarded)
    shape = decided_parts.guard(outcome) if guarded else []
    shape += _leased(outcome.order.merchant_id, answer, changed)
    shape += [build(outcome) for name, build in _OPTIONAL if getattr(outcome, name)]
    return await _run(session, shape)


async def create(session: Session, new: NewOrder, answer: Answer | None = None) -> bool:
    """Write a new order. False where the Idempotency-Key's lease was lost, or the signed text made one before."""
    created = parts.created(new.order, new.token, len(new.events), leased=answer is not None)
    shape = _leased(new.order.merchant_id, answer, created)
    shape.append(parts.details(new.reference, new.document))
    shape += [parts.started(new.start)] if new.start else []
    shape += [parts.events(new.events, 0, new.order.created_at), parts.OUTBOX]
    return await _run(session, shape)


def _leased(merchant_id: UUID, answer: Answer | None, changed: Part) -> list[Part]:
    """The order between its lease and its answer: a stale outcome must not leave an answer behind."""
    if answer is None:
        return [changed]
    held = parts.held(merchant_id, answer.key, answer.lease)
    return [held, changed, parts.kept(merchant_id, answer.key, answer.lease, answer.status, answer.body)]


async def _run(session: Session, shape: list[Part]) -> bool:
    sql = _statement(tuple((part.name, part.sql, len(part.values)) for part in shape))
    values = [value for part in shape for value in part.values]
    try:
        row = await asyncio.shield(session.fetchrow(sql, *values))
    except asyncpg.UniqueViolationError:
        # Another outcome used the key, or began a charge, between our read and our write: decide again.
        return False
    return row is not None and row["saved"] == 1


@lru_cache(maxsize=256)
def _statement(shape: tuple[tuple[str, str, int], ...]) -> str:
    """Join parts into one statement; each numbers its parameters from :1, and gets its own range here."""
    ctes, base = [], 0
    for name, sql, count in shape:
        text = sql
        for index in range(count, 0, -1):
            text = text.replace(f":{index}", f"${base + index}")
        ctes.append(f"{name} AS ({text})")
        base += count
    return f"WITH {', '.join(ctes)} SELECT count(*) AS saved FROM changed"
