"""Adds, changes and removes the people who own or control a merchant's business."""

from __future__ import annotations

from uuid import UUID

from cuota.core.onboarding.owner import Owner, OwnerDetails, require_shares
from cuota.core.onboarding.problem import BadOnboarding
from cuota.db.onboarding import merchant_owners
from cuota.flows.context import Context
from cuota.flows.onboarding.change_business import CHANGED
from cuota.flows.onboarding.change_checklist import Hand, changing
from cuota.flows.onboarding.sealed_details import seal_owner

GONE = "This person is no longer an owner. Nothing was changed."


async def add_owner(
    context: Context, merchant_id: UUID, hand: Hand, owner_id: UUID, details: OwnerDetails
) -> None:
    """Add an owner. Raises BadOnboarding. The page chooses the id, so a second click adds no second owner."""
    async with changing(context, merchant_id, hand.actor, renames=True) as (session, before):
        if any(each.owner_id == owner_id for each in before.facts.owners):
            return
        require_shares([*(each.details for each in before.facts.owners), details])
        sealed = seal_owner(context.vault, Owner(owner_id, 1, details))
        if not await merchant_owners.add(session, merchant_id, sealed, context.now()):
            raise BadOnboarding.of(GONE)
        await hand.record(context, session, merchant_id, "onboarding.owner.add", f"Owner {owner_id}")


async def change_owner(
    context: Context, merchant_id: UUID, hand: Hand, owner_id: UUID, details: OwnerDetails, seen: int
) -> None:
    """Change the data of an owner. `seen` is the version that the person saw. Raises BadOnboarding."""
    async with changing(context, merchant_id, hand.actor, renames=True) as (session, before):
        held = next((each for each in before.facts.owners if each.owner_id == owner_id), None)
        if held is None:
            raise BadOnboarding.of(GONE)
        if held.details == details:
            return
        others = [each.details for each in before.facts.owners if each.owner_id != owner_id]
        require_shares([*others, details])
        sealed = seal_owner(context.vault, Owner(owner_id, seen, details))
        if not await merchant_owners.change(session, merchant_id, sealed):
            raise BadOnboarding.of(CHANGED)
        await hand.record(context, session, merchant_id, "onboarding.owner.change", f"Owner {owner_id}")


async def remove_owner(context: Context, merchant_id: UUID, hand: Hand, owner_id: UUID) -> None:
    """Record that a person is no longer an owner. A second click changes nothing."""
    async with changing(context, merchant_id, hand.actor, renames=True) as (session, _):
        if await merchant_owners.remove(session, merchant_id, owner_id, context.now()):
            await hand.record(context, session, merchant_id, "onboarding.owner.remove", f"Owner {owner_id}")
