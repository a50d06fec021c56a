"""Movements of money above a limit: one person of the team requests a movement, and another person approves it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.core import money
from cuota.core.desk.role import Action, may
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.db.desk import approvals, audit, people
from cuota.db.desk.approvals import Approval
from cuota.db.session import Session
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.record import Actor, AuditNote, record


class CannotApprove(Exception):
    """The decision cannot be made. The text gives the reason."""


OWN = "You asked for this yourself. Another person of your team must approve it."
USED = "This form was sent before, and another person was asked. Nothing was changed now. Check the amount, and send it again."
NO_LONGER = "Your role no longer includes this. Nothing was changed."
# The page Approvals lists more than these, so a request that waits is never left out. The limit also holds roughly if several people ask
# at the same moment, and needs no lock.
MOST_WAITING = 50
TOO_MANY = f"{MOST_WAITING} requests wait for a second person already. Nothing was changed. Another person must decide some of them first."
DECIDED = "Another person has already decided this. Look at the current state."

# The action that a person's role must include for each movement.
ACTION_OF = {
    MovementKind.CAPTURE: Action.CAPTURE,
    MovementKind.VOID: Action.VOID,
    MovementKind.REFUND: Action.REFUND,
}

# The order's total that each movement raises, as the audit log names it.
TOTAL_OF = {MovementKind.CAPTURE: "captured", MovementKind.VOID: "voided", MovementKind.REFUND: "refunded"}
# The movements of one person, of one kind, of one order within this time count as one amount: an amount cannot be split to avoid
# the limit.
TOGETHER = timedelta(hours=24)


def needs_second_person(context: Context, cents: int) -> bool:
    """Whether a movement of this amount needs a second person (CUOTA_DESK_SECOND_PERSON_ABOVE)."""
    above = context.settings.desk_second_above
    return above is not None and cents > above


async def moved_alone(
    context: Context,
    merchant_id: UUID,
    actor: Actor,
    order_id: UUID,
    asked: MovementRequest,
    session: Session | None = None,
) -> int:
    """Return the cents that the person has moved alone of this order in the same way, in other movements within TOGETHER."""
    person = actor.person
    if person is None or context.settings.desk_second_above is None:
        return 0
    return await audit.moved_alone(
        session or context.pool, merchant_id, order_id, person.person_id, action=f"order.{asked.kind}",
        total=TOTAL_OF[asked.kind], since=context.now() - TOGETHER, but=f"reference {asked.reference}",
    )  # fmt: skip


async def record_alone(
    context: Context, merchant_id: UUID, actor: Actor, order_id: UUID, asked: MovementRequest, done: AuditNote
) -> bool:
    """Write the audit entry of a movement that one person makes alone. Return False, and write nothing, if it needs a second person.

    The person's row stays locked until the entry is committed, so several movements at the same moment are added up one after the
    other. A movement that is refused after its entry counts too. Raises CannotApprove if the person was removed.
    """
    person = actor.person
    assert person is not None
    async with context.pool.session() as session, session.transaction():
        if not await people.lock(session, merchant_id, person.person_id):
            raise CannotApprove(NO_LONGER)
        before = await moved_alone(context, merchant_id, actor, order_id, asked, session)
        if needs_second_person(context, before + asked.amount):
            return False
        await record(context, merchant_id, actor, done, session)
        return True


async def ask_approval(
    context: Context, merchant_id: UUID, actor: Actor, order_id: UUID, asked: MovementRequest, reason: str
) -> None:
    """Request a movement. A second click adds no second request. The request and its audit entry are one transaction.

    Raises CannotApprove if the form was used before, for another amount, or for a request that is decided already, or if too many requests
    wait.
    """
    person = actor.person
    assert person is not None
    new = Approval(
        context.new_id(), order_id, asked.kind, asked.amount, asked.reference, reason, person.person_id, actor.words, utc_now()
    )  # fmt: skip
    async with context.pool.session() as session, session.transaction():
        if await approvals.add(session, merchant_id, new):
            if await approvals.count_waiting(session, merchant_id) > MOST_WAITING:
                raise CannotApprove(TOO_MANY)
            note = AuditNote(f"order.{asked.kind}.asked", _subject(new), reason, order_id)
            await record(context, merchant_id, actor, note, session)
            return
    earlier = await approvals.by_reference(context.pool, merchant_id, asked.reference)
    same = new.order_id, new.kind, new.amount, new.state
    if earlier is None or (earlier.order_id, earlier.kind, earlier.amount, earlier.state) != same:
        raise CannotApprove(USED)


async def require_not_asked(context: Context, merchant_id: UUID, reference: str) -> None:
    """Raise CannotApprove if a second person was asked for the movement with this reference."""
    if await approvals.by_reference(context.pool, merchant_id, reference) is not None:
        raise CannotApprove(USED)


def _subject(asked: Approval) -> str:
    return f"{asked.kind.capitalize()} {money.shown(asked.amount)}, reference {asked.reference}, asked by {asked.asker}"


async def decide_approval(
    context: Context, merchant_id: UUID, actor: Actor, asked: Approval, *, approve: bool
) -> None:
    """Approve or reject a request. The person who made the request can only withdraw it. Raises CannotApprove.

    An approval needs the person's current role, which another person may have changed since the request began.
    """
    person = actor.person
    assert person is not None
    if approve and asked.asked_by == person.person_id:
        raise CannotApprove(OWN)
    state = "approved" if approve else "rejected"
    async with context.pool.session() as session, session.transaction():
        await people.lock(session, merchant_id, person.person_id)
        current = await people.read(session, merchant_id, person.person_id)
        if current is None or (approve and not may(current.role, ACTION_OF[asked.kind])):
            raise CannotApprove(NO_LONGER)
        decided = await approvals.decide(
            session, merchant_id, asked.approval_id, state, person.person_id, actor.words, utc_now()
        )
        if not decided:
            raise CannotApprove(DECIDED)
        note = AuditNote(f"order.{asked.kind}.{state}", _subject(asked), asked.reason, asked.order_id)
        await record(context, merchant_id, actor, note, session)
