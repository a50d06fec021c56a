"""The only module that writes money. One call of a function in the database saves an outcome, in one transaction.

The function (`save_orders`, in the migrations) updates the orders whose versions are still the ones that were read. It
writes the rest for these orders only, so an outdated outcome writes nothing. Unique keys and CHECK constraints protect
the tables in addition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from cuota.core.checkout.start import Start
from cuota.core.order.event import Event
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.db.gathered import Gathered
from cuota.db.order import change_tables, claim_tables, review_tables
from cuota.db.order import outcome_tables as tables
from cuota.db.order.columns import Values, changed_row, new_row
from cuota.db.order.save_call import ANSWER, Answer, answer_values, call
from cuota.db.pool import Pool
from cuota.db.session import Session

__all__ = ["Answer", "NewOrder", "create", "save"]


@dataclass(frozen=True, slots=True)
class NewOrder:
    """A new order with its first events. Only an erasure changes the token, the merchantReference and the JSON document."""

    order: Order
    token: UUID
    reference: str
    document: str
    events: tuple[Event, ...]
    start: Start | None = None


SAVE_PARAMETERS = (
    "merchant uuid",
    *tables.CHANGED_ORDERS.parameters,
    *(parameter for table, _ in tables.ARRAYS for parameter in table.parameters),
    *(parameter for table, _ in tables.JSONS for parameter in table.parameters),
    *ANSWER,
)
CREATE_PARAMETERS = (
    "merchant uuid",
    *tables.NEW_ORDERS.parameters,
    *tables.DETAILS.parameters,
    *tables.EVENTS.parameters,
    *tables.STARTED.parameters,
    *ANSWER,
)
# An outcome about a dispute or a return notice writes more tables. It is always saved alone.
SAVE_CLAIMS_PARAMETERS = (*SAVE_PARAMETERS, *claim_tables.PARAMETERS)
# A change of a plan, which is rare, is saved in the same way.
SAVE_CHANGE_PARAMETERS = (*SAVE_PARAMETERS, *change_tables.PARAMETERS)
# So is an outcome that begins or ends a review.
SAVE_REVIEWED_PARAMETERS = (*SAVE_PARAMETERS, *review_tables.PARAMETERS)
SAVE = call("save_orders", SAVE_PARAMETERS)
SAVE_CHANGE = call("save_plan_change", SAVE_CHANGE_PARAMETERS)
SAVE_CLAIMS = call("save_claims", SAVE_CLAIMS_PARAMETERS)
SAVE_REVIEWED = call("save_reviewed", SAVE_REVIEWED_PARAMETERS)
CREATE = call("create_orders", CREATE_PARAMETERS)


async def save(session: Session, outcome: Outcome, answer: Answer | None = None) -> bool:
    """Save an outcome. True: everything is durable. False: nothing was written.

    Nothing is written if the order changed since the read, the lease was lost, or a unique key was taken.
    The call is never cancelled once it was sent, even if the caller is. On a pool, outcomes that wait at the same
    moment are saved in one batch. An outcome is saved alone if it is inside the caller's transaction, has an answer for an
    Idempotency-Key, or has a risk decision, or is about a dispute, a change of the plan or a review.
    """
    if outcome.plan_change is not None:
        assert not outcome.is_about_claims, "a change of a plan leaves disputes alone"
        values = (*_changed([outcome], answer), *change_tables.change_values(outcome))
        return await _alone(session, SAVE_CHANGE, values)
    if outcome.is_about_claims:
        values = (*_changed([outcome], answer), *claim_tables.claim_values(outcome))
        return await _alone(session, SAVE_CLAIMS, values)
    if outcome.is_about_review:
        values = (*_changed([outcome], answer), *review_tables.review_values(outcome))
        return await _alone(session, SAVE_REVIEWED, values)
    if isinstance(session, Pool) and answer is None and outcome.decision is None:
        return await session.together(_SAVES, outcome.order.merchant_id, outcome)
    return await _alone(session, SAVE, _changed([outcome], answer))


async def create(session: Session, new: NewOrder, answer: Answer | None = None) -> bool:
    """Save a new order.

    Return False if the lease on the Idempotency-Key was lost, or the signed text already made an order.
    """
    if isinstance(session, Pool) and answer is None and new.start is None:
        return await session.together(_CREATES, new.order.merchant_id, new)
    return await _alone(session, CREATE, _created([new], answer))


def _changed(outcomes: Sequence[Outcome], answer: Answer | None = None) -> Values:
    """Return the values of SAVE_PARAMETERS for outcomes of one merchant."""
    values = [
        outcomes[0].order.merchant_id,
        *tables.CHANGED_ORDERS.values([changed_row(outcome) for outcome in outcomes]),
    ]
    for arrays, rows_of in tables.ARRAYS:
        values += arrays.values([row for outcome in outcomes for row in rows_of(outcome)])
    for jsons, nth_rows_of in tables.JSONS:
        values += jsons.values(
            [row for nth, outcome in enumerate(outcomes, 1) for row in nth_rows_of(outcome, nth)]
        )
    return (*values, *answer_values(answer))


def _created(new: Sequence[NewOrder], answer: Answer | None = None) -> Values:
    """Return the values of CREATE_PARAMETERS for new orders of one merchant."""
    orders = [new_row(one.order, one.token, len(one.events)) for one in new]
    details = [(one.order.order_id, one.reference, one.document) for one in new]
    events = [
        row for one in new for row in tables.events(one.order.order_id, one.events, 0, one.order.created_at)
    ]
    starts = [tables.started(nth, one.start) for nth, one in enumerate(new, 1) if one.start]
    return (
        new[0].order.merchant_id,
        *tables.NEW_ORDERS.values(orders),
        *tables.DETAILS.values(details),
        *tables.EVENTS.values(events),
        *tables.STARTED.values(starts),
        *answer_values(answer),
    )


async def _alone(session: Session, sql: str, values: Values) -> bool:
    try:
        saved = await asyncio.shield(_saved(session, sql, values))
    except asyncpg.UniqueViolationError:
        # Another outcome used the same reference, or began a charge, between our read and our write. The caller decides
        # again.
        return False
    return bool(saved)


async def _saved(session: Session, sql: str, values: Values) -> list[UUID]:
    row = await session.fetchrow(sql, *values)
    assert row is not None, "a SELECT of one function call returns one row"
    saved: list[UUID] = row["saved"]
    return saved


async def _save_together(session: Session, outcomes: Sequence[Outcome]) -> list[bool]:
    # Sort the batch by order id, so that two batches usually lock their orders in the same sequence.
    batch = sorted(outcomes, key=lambda outcome: outcome.order.order_id)
    saved = {*await _saved(session, SAVE, _changed(batch))}
    return [outcome.order.order_id in saved for outcome in outcomes]


async def _save_one(session: Session, outcome: Outcome) -> bool:
    return await _alone(session, SAVE, _changed([outcome]))


async def _create_together(session: Session, new: Sequence[NewOrder]) -> list[bool]:
    await _saved(session, CREATE, _created(new))
    return [True] * len(new)


async def _create_one(session: Session, new: NewOrder) -> bool:
    return await _alone(session, CREATE, _created([new]))


# A batch holds at most one outcome of each order, because saving the first would make the second outdated.
_SAVES = Gathered(_save_one, _save_together, lambda outcome: outcome.order.order_id)
_CREATES = Gathered(_create_one, _create_together)
