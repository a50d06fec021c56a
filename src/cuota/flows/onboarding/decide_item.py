"""The operator accepts or rejects an item of a checklist, or decides about a possible match of a name."""

from __future__ import annotations

from uuid import UUID

from cuota.core.merchant import Merchant
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemDecision, ItemState
from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.onboarding.screening import FindingState
from cuota.core.reason import LONGEST_REASON
from cuota.db.onboarding import item_decisions, screenings
from cuota.flows.context import Context
from cuota.flows.onboarding.change_checklist import changing
from cuota.flows.operator.log_action import (
    OperatorActor,
    OperatorNote,
    log_action,
    refusal_logged,
    tell_merchant,
)

CHANGED = "This has changed since you opened the page. Nothing was decided: look at it again."


async def decide_item(
    context: Context,
    merchant: Merchant,
    actor: OperatorActor,
    item: Item,
    seen: str,
    reason: str,
    *,
    accepted: bool,
) -> None:
    """Accept or reject an item. `seen` identifies the data that the person saw. Raises BadOnboarding.

    The merchant is approved when all items are accepted, and loses the approval when one is rejected. The merchant reads the
    reason of a rejection. Repeating the same decision changes nothing, and has no entry in the log.
    """
    _require_short(reason)
    if item not in DECIDABLE:
        raise BadOnboarding.of("Decide about each possible match of a name instead.")
    word = "accept" if accepted else "reject"
    note = OperatorNote(
        f"onboarding.{word}", merchant.name, reason, merchant.merchant_id, after={"item": item.value}
    )
    person = actor.person.person_id if actor.person else None
    wanted = ItemState.ACCEPTED if accepted else ItemState.REJECTED
    async with (
        refusal_logged(context, actor, note),
        changing(context, merchant.merchant_id, actor) as (session, before),
    ):
        now = before.checklist[item]
        if now.state is ItemState.MISSING or now.about != seen:
            raise BadOnboarding.of(now.missing or CHANGED)
        if now.state is wanted:
            return
        await log_action(context, actor, note, session)
        made = ItemDecision(item, accepted, seen, reason, actor.words, context.now())
        await item_decisions.add(session, merchant.merchant_id, context.new_id(), made, person)
        await tell_merchant(context, merchant.merchant_id, note, session)


async def decide_finding(
    context: Context,
    merchant: Merchant,
    actor: OperatorActor,
    finding_id: UUID,
    state: FindingState,
    reason: str,
) -> None:
    """Clear or confirm a possible match. Raises BadOnboarding. Until it is cleared, a confirmed match blocks the approval.

    The merchant's audit log does not show the decision, because a sanctioned person must not be warned.
    """
    assert state is not FindingState.OPEN
    _require_short(reason)
    word = "clear" if state is FindingState.CLEARED else "confirm"
    note = OperatorNote(
        f"screening.{word}", merchant.name, reason, merchant.merchant_id, after={"finding": str(finding_id)}
    )
    person = actor.person.person_id if actor.person else None
    async with (
        refusal_logged(context, actor, note),
        changing(context, merchant.merchant_id, actor) as (session, before),
    ):
        findings = before.facts.screening.findings
        seen = next((each for each in findings if each.finding_id == finding_id), None)
        if seen is None:
            raise BadOnboarding.of(CHANGED)
        if seen.state is state:
            return
        await log_action(context, actor, note, session)
        await screenings.decide(
            session, merchant.merchant_id, seen, state, reason, person, actor.words, context.now()
        )


def _require_short(reason: str) -> None:
    if len(reason) > LONGEST_REASON:
        raise BadOnboarding.of(f"A reason has at most {LONGEST_REASON} characters.", "reason")
