"""The transaction that changes a checklist, and then gives or withdraws the approval."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from cuota.core.merchant import Onboarding
from cuota.db.merchant import merchants
from cuota.db.onboarding import onboardings, screenings
from cuota.db.payout import holds
from cuota.db.payout.holds import HoldReason
from cuota.db.pool import Connection
from cuota.flows.context import Context
from cuota.flows.desk.record import Actor, AuditNote, record
from cuota.flows.onboarding.read_checklist import OpenedOnboarding, read_checklist
from cuota.flows.operator.log_action import OperatorActor, OperatorNote, log_action, tell_merchant

# The actor in the logs if an approval results from a merchant's own change.
SERVICE = OperatorActor(None, job="onboarding")


@dataclass(frozen=True, slots=True)
class Hand:
    """The person who changes a checklist, of the merchant's team or of the operator's team.

    The operator's people give a reason.
    """

    actor: Actor | OperatorActor
    reason: str = ""

    @property
    def words(self) -> str:
        """The person's current name and address."""
        return self.actor.words

    async def record(
        self, context: Context, session: Connection, merchant_id: UUID, action: str, subject: str
    ) -> None:
        """Write the logs, in the session's transaction. `subject` has no personal data."""
        if isinstance(self.actor, Actor):
            await record(context, merchant_id, self.actor, AuditNote(action, subject), session)
            return
        note = OperatorNote(action, subject, self.reason, merchant_id)
        await log_action(context, self.actor, note, session)
        await tell_merchant(context, merchant_id, note, session)


@asynccontextmanager
async def changing(
    context: Context, merchant_id: UUID, actor: Actor | OperatorActor, *, renames: bool = False
) -> AsyncIterator[tuple[Connection, OpenedOnboarding]]:
    """Change a checklist in one transaction, under the merchant's lock. The block gets the checklist as it was before.

    At the end, the merchant is approved if all items are accepted, and loses the approval if one is rejected. The logs then name
    `actor`, or the service if `actor` is the merchant. With `renames`, the names may have changed; changed names are screened at
    once.
    """
    async with context.pool.session() as session, session.transaction():
        await onboardings.lock(session, merchant_id)
        before = await read_checklist(context, merchant_id, session)
        yield session, before
        after = await read_checklist(context, merchant_id, session)
        if renames and after.facts.names != before.facts.names:
            await _screen_soon(context, session, merchant_id, after)
        await onboardings.note_to_check(
            session, merchant_id, context.now(), to_check=after.checklist.to_check
        )
        await _settle(context, session, merchant_id, actor, after)


async def _screen_soon(
    context: Context, session: Connection, merchant_id: UUID, after: OpenedOnboarding
) -> None:
    if after.facts.names is None:
        await screenings.nothing(session, merchant_id)
    else:
        await screenings.soon(session, merchant_id, context.now())


async def _settle(
    context: Context,
    session: Connection,
    merchant_id: UUID,
    actor: Actor | OperatorActor,
    after: OpenedOnboarding,
) -> None:
    """Approve the merchant, or withdraw the approval.

    Only the operator rejects. A merchant that undoes a change is approved if the operator has accepted everything else.
    """
    if isinstance(actor, Actor):
        actor = SERVICE
    before = await onboardings.standing(session, merchant_id)
    if after.checklist.approved and before is not Onboarding.APPROVED:
        new, action, reason = (
            Onboarding.APPROVED,
            "merchant.approve",
            "all items of the checklist are accepted",
        )
    elif after.checklist.rejected and before is Onboarding.APPROVED:
        new, action, reason = Onboarding.OPEN, "merchant.unapprove", "an item of the checklist is rejected"
    else:
        return
    # This locks the settlement's row before the merchant's row, like all other code.
    await holds.hold(session, merchant_id, HoldReason.UNAPPROVED, context.now(), on=new is Onboarding.OPEN)
    await onboardings.set_standing(session, merchant_id, new)
    found = await merchants.read(session, merchant_id)
    assert found is not None
    changed = ({"onboarding": before.value}, {"onboarding": new.value})
    note = OperatorNote(action, found.name, reason, merchant_id, *changed)
    await log_action(context, actor, note, session)
    await tell_merchant(context, merchant_id, note, session)


async def note_change(context: Context, merchant_id: UUID) -> None:
    """Update the checklist after a change elsewhere, such as of the bank account.

    Does nothing if the onboarding has not begun.
    """
    if await onboardings.read(context.pool, merchant_id) is not None:
        async with changing(context, merchant_id, Actor(None)):
            pass
