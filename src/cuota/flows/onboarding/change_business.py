"""Stores a merchant's business."""

from __future__ import annotations

from dataclasses import fields
from uuid import UUID

from cuota.core.onboarding.business import Business
from cuota.core.onboarding.problem import BadOnboarding
from cuota.db.onboarding import onboardings
from cuota.flows.context import Context
from cuota.flows.onboarding.change_checklist import Hand, changing
from cuota.flows.onboarding.sealed_details import seal_business

CHANGED = "Somebody else has changed this since you opened the page. What you typed is still here: look at it, and save it again."


async def change_business(
    context: Context, merchant_id: UUID, hand: Hand, business: Business, seen: int
) -> None:
    """Store the business. `seen` is the version that the person saw. Raises BadOnboarding if the version has changed since.

    After a change, the operator must check the business again, and its names are screened. If nothing is different, nothing
    happens.
    """
    async with changing(context, merchant_id, hand.actor, renames=True) as (session, before):
        held = before.facts.business
        if business == held:
            return
        if before.facts.version != seen:
            raise BadOnboarding.of(CHANGED)
        await onboardings.save_business(
            session, merchant_id, seal_business(context.vault, merchant_id, business)
        )
        changed = [
            each.name
            for each in fields(Business)
            if held is None or getattr(held, each.name) != getattr(business, each.name)
        ]
        subject = f"Business: {', '.join(changed).replace('_', ' ')}"
        await hand.record(context, session, merchant_id, "onboarding.business", subject)
