"""The only module that writes money. It saves an outcome in one statement, one transaction, one round trip.

The statement begins with the orders whose versions are still the ones that were read. Every other part takes its rows
from those orders, so an outdated outcome writes nothing. Unique keys and CHECK constraints protect the tables in
addition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import asyncpg

from cuota.core.checkout.start import Start
from cuota.core.order.event import Event
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.db.gathered import Gathered
from cuota.db.order import decided_parts
from cuota.db.order import outcome_parts as parts
from cuota.db.order import outcome_tables as tables
from cuota.db.order.outcome_parts import StatementPart
from cuota.db.pool import Pool
from cuota.db.session import Session


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to store for an Idempotency-Key, together with the money. It is saved only while the lease is held."""

    key: str
    lease: UUID
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class NewOrder:
    """A new order with its first events and the parts that never change: token, merchantReference, JSON document."""

    order: Order
    token: UUID
    reference: str
    document: str
    events: tuple[Event, ...]
    start: Start | None = None


async def save(session: Session, outcome: Outcome, answer: Answer | None = None) -> bool:
    """Save an outcome. True: everything is durable. False: the order has changed meanwhile and nothing was written.

    The statement is never cancelled once it was sent, even if the caller is. On a pool, outcomes that wait at the same
    moment are saved in one batch. Inside the caller's transaction, with a lease, or with a risk decision, an outcome is
    saved alone.
    """
    if isinstance(session, Pool) and answer is None and outcome.decision is None:
        return await session.together(_SAVES, outcome.order.merchant_id, outcome)
    guarded = outcome.decision is not None
    changed = parts.changed([outcome], leased=answer is not None, guarded=guarded)
    shape = decided_parts.guard(outcome) if guarded else []
    shape += _leased(outcome.order.merchant_id, answer, changed)
    shape += _written([outcome])
    if guarded:
        shape += [decided_parts.decision(outcome), decided_parts.signals(outcome)]
    return await _alone(session, shape)


async def create(session: Session, new: NewOrder, answer: Answer | None = None) -> bool:
    """Save a new order.

    Return False if the lease on the Idempotency-Key was lost, or the signed text already made an order.
    """
    if isinstance(session, Pool) and answer is None and new.start is None:
        return await session.together(_CREATES, new.order.merchant_id, new)
    created = parts.created([(new.order, new.token, len(new.events))], leased=answer is not None)
    shape = _leased(new.order.merchant_id, answer, created)
    return await _alone(session, shape + _begun([new]))


def _leased(merchant_id: UUID, answer: Answer | None, changed: StatementPart) -> list[StatementPart]:
    """Put the order between its lease and its response, so that an outdated outcome leaves no response behind."""
    if answer is None:
        return [changed]
    held = parts.held(merchant_id, answer.key, answer.lease)
    return [held, changed, parts.kept(merchant_id, answer.key, answer.lease, answer.status, answer.body)]


def _written(outcomes: Sequence[Outcome]) -> list[StatementPart]:
    """Return the parts for everything that these outcomes write, except the orders themselves."""
    shape = []
    for table, rows_of in tables.TABLES:
        rows = [row for outcome in outcomes for row in rows_of(outcome)]
        if rows:
            shape.append(table.part(rows))
            if table is tables.EVENTS:
                shape.append(tables.OUTBOX)
    return shape


def _begun(new: Sequence[NewOrder]) -> list[StatementPart]:
    """Return the parts for everything that these new orders write, except the orders themselves."""
    details = [(one.order.order_id, one.reference, one.document) for one in new]
    starts = [tables.started(one.order.order_id, one.start) for one in new if one.start]
    events = [
        row for one in new for row in tables.events(one.order.order_id, one.events, 0, one.order.created_at)
    ]
    shape = [tables.DETAILS.part(details)]
    shape += [tables.STARTED.part(starts)] if starts else []
    return [*shape, tables.EVENTS.part(events), tables.OUTBOX]


async def _alone(session: Session, shape: list[StatementPart]) -> bool:
    try:
        row = await asyncio.shield(session.fetchrow(*_asked(shape)))
    except asyncpg.UniqueViolationError:
        # Another outcome used the same reference, or began a charge, between our read and our write. The caller decides
        # again.
        return False
    return row is not None


def _asked(shape: list[StatementPart]) -> tuple[str, *tuple[object, ...]]:
    sql = _statement(tuple((part.name, part.sql, len(part.values)) for part in shape))
    return (sql, *(value for part in shape for value in part.values))


@lru_cache(maxsize=256)
def _statement(shape: tuple[tuple[str, str, int], ...]) -> str:
    """Join the parts into one statement. Each part numbers its parameters from :1 and gets its own range here."""
    ctes, base = [], 0
    for name, sql, count in shape:
        text = sql
        for index in range(count, 0, -1):
            text = text.replace(f":{index}", f"${base + index}")
        ctes.append(f"{name} AS ({text})")
        base += count
    return f"WITH {', '.join(ctes)} SELECT order_id FROM changed"


async def _save_together(session: Session, outcomes: Sequence[Outcome]) -> list[bool]:
    # Always sorted by order id, so that two batches never deadlock.
    batch = sorted(outcomes, key=lambda outcome: outcome.order.order_id)
    saved = {
        row["order_id"] for row in await session.fetch(*_asked([parts.changed(batch), *_written(batch)]))
    }
    return [outcome.order.order_id in saved for outcome in outcomes]


async def _save_one(session: Session, outcome: Outcome) -> bool:
    return await _alone(session, [parts.changed([outcome]), *_written([outcome])])


async def _create_together(session: Session, new: Sequence[NewOrder]) -> list[bool]:
    created = parts.created((one.order, one.token, len(one.events)) for one in new)
    await session.fetch(*_asked([created, *_begun(new)]))
    return [True] * len(new)


async def _create_one(session: Session, new: NewOrder) -> bool:
    created = parts.created([(new.order, new.token, len(new.events))])
    return await _alone(session, [created, *_begun([new])])


# A batch holds at most one outcome of each order, because saving the first would make the second outdated.
_SAVES = Gathered(_save_one, _save_together, lambda outcome: outcome.order.order_id)
_CREATES = Gathered(_create_one, _create_together)
