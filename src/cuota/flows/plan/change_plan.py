"""Changes the plan of a consumer in hardship: first shows the new plan, and then makes the change once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cuota.core import money
from cuota.core.order.change_plan import CHANGED_MEANWHILE, Agreeing, change_plan, preview, said_of, text_of
from cuota.core.order.outcome import Outcome
from cuota.core.plan.change import PlanChange
from cuota.core.plan.hardship import CannotChange, HardshipPolicy, HardshipRequest, NewPlan, WaiveFee
from cuota.db.plan import plan_changes, waivers
from cuota.db.plan.plan_changes import PlanToChange
from cuota.db.plan.waivers import Waiver
from cuota.db.row_security import everyone
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.settle import settle

YEAR = timedelta(days=365)
# A save never takes this long. If an older waiver has no change, the change was never saved.
IN_DOUBT = timedelta(minutes=15)
NO_PLAN = "There is no plan of this order."


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """The plan that a request would produce. `said` is one sentence, `text` is the text that would be stored and sent."""

    found: PlanToChange
    new: NewPlan
    said: str
    text: str


def sealed_for(order_id: UUID, number: int) -> str:
    """Return the value to which the encryption of a change's reason is bound."""
    return f"plan-change:{order_id}:{number}"


def reason_of_change(context: Context, order_id: UUID, change: PlanChange) -> str:
    """Return the reason of a change; empty after an erasure."""
    return context.vault.decrypt(change.reason, sealed_for(order_id, change.number)) if change.reason else ""


async def find_plan_to_change(context: Context, merchant_id: UUID, order_id: UUID) -> PlanToChange | None:
    """Return a plan with its changes, or None."""
    return await plan_changes.read_to_change(context.pool, merchant_id, order_id)


async def preview_change(
    context: Context, merchant_id: UUID, order_id: UUID, request: HardshipRequest, mark: str | None = None
) -> PlanPreview:
    """Return the plan that a request would produce now. Nothing is changed. Raises CannotChange.

    With `mark`, also raise CannotChange if the plan differs from the plan with this mark.
    """
    found = await find_plan_to_change(context, merchant_id, order_id)
    if found is None:
        raise CannotChange(NO_PLAN)
    if mark is not None and mark != found.before.mark:
        raise CannotChange(CHANGED_MEANWHILE)
    now = context.now()
    new = preview(found.before, request, context.settings.hardship, now)
    if new.waived:
        await _settle_old(context, found.consumer_id)
        used = await waived_this_year(context, found.consumer_id)
        _require_waivable(context.settings.hardship, used, new.waived)
    return PlanPreview(found, new, said_of(found.before, new), text_of(found.before, new, now))


async def waived_this_year(context: Context, consumer_id: UUID) -> int:
    """Return the plan fees that were waived for a consumer within the last 365 days, in cents."""
    with everyone():
        return await waivers.used(context.pool, consumer_id, context.now() - YEAR)


def _require_waivable(policy: HardshipPolicy, used: int, asked: int) -> None:
    if used + asked > policy.fee_a_year:
        before = f"; {money.shown(used)} was waived already" if used else ""
        raise CannotChange(
            f"At most {money.shown(policy.fee_a_year)} of fees may be waived for a consumer within 365 days{before}.",
            "waive",
        )


async def agree_on_change(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    request: HardshipRequest,
    *,
    by: str,
    reason: str,
    mark: str,
) -> PlanChange:
    """Change the plan, and notify the consumer.

    Raises CannotChange, also if the plan differs from the plan with the mark `mark`.
    """
    shown = await preview_change(context, merchant_id, order_id, request, mark)
    change_id, consumer_id = context.new_id(), shown.found.consumer_id
    number = len(shown.found.before.earlier) + 1
    sealed = context.vault.encrypt(reason, sealed_for(order_id, number))
    if shown.new.waived:
        await _reserve(context, Waiver(consumer_id, change_id, merchant_id, order_id, shown.new.waived))
        # The waived amount must equal the reserved amount.
        request = WaiveFee(shown.new.waived)

    def decide(found: PlanToChange) -> Outcome | None:
        if _made(found, change_id):
            # Our own earlier save, whose answer was lost, has made this change.
            return None
        agreeing = Agreeing(change_id, by, sealed, mark, context.now())
        return change_plan(found.before, request, context.settings.hardship, agreeing, context.new_id)

    try:
        done = await settle(context, merchant_id, order_id, decide, _read)
    except CannotChange:
        if shown.new.waived:
            with everyone():
                await waivers.release(context.pool, consumer_id, change_id)
        raise
    if shown.new.waived:
        with everyone():
            await waivers.settle(context.pool, consumer_id, change_id)
    change = done.outcome.plan_change if done.outcome else _made(done.found, change_id)
    assert change is not None
    return change


def _made(found: PlanToChange, change_id: UUID) -> PlanChange | None:
    return next((each for each in found.before.earlier if each.change_id == change_id), None)


async def _read(session: Session, merchant_id: UUID, order_id: UUID) -> PlanToChange | None:
    return await plan_changes.read_to_change(session, merchant_id, order_id)


async def _reserve(context: Context, waiver: Waiver) -> None:
    policy, now = context.settings.hardship, context.now()
    with everyone():
        used = await waivers.reserve(context.pool, waiver, now, now - YEAR, policy.fee_a_year)
    if used is not None:
        _require_waivable(policy, used, waiver.amount)


async def _settle_old(context: Context, consumer_id: UUID) -> None:
    """Settle waivers whose plan may or may not have been changed, because of a crash."""
    with everyone():
        for change_id, merchant_id in await waivers.unsettled(
            context.pool, consumer_id, context.now() - IN_DOUBT
        ):
            if await plan_changes.exists(context.pool, merchant_id, change_id):
                await waivers.settle(context.pool, consumer_id, change_id)
            else:
                await waivers.release(context.pool, consumer_id, change_id)
