"""What a consumer does with a plan of theirs: pay early, pay off, change the card."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from cuota.core.checkout.card import CardEntry
from cuota.core.checkout.ending import Charging
from cuota.core.installment import Installment, owed
from cuota.core.order.outcome import Outcome
from cuota.core.plan import collection
from cuota.core.plan.card import PlanCard
from cuota.core.plan.collection import CardBusy, NothingOwed, needs_card
from cuota.db.plan import accounts, plans
from cuota.db.plan.accounts import PlanDetail
from cuota.db.plan.plans import Agreed
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context
from cuota.flows.plan.collect_installments import collect, pay_now
from cuota.flows.plan.limit_asks import (
    Asker,
    card_hash,
    count_ask,
    count_card,
    free_network,
    give_back,
    note_paid,
)
from cuota.flows.settle import settle
from cuota.rails.unavailable import RailUnavailable

BUSY = "A payment for this plan is being made right now. Look again in a minute; nothing is charged twice."
NOT_OWED = "This payment is not due any more. Here is your plan as it stands."
CHANGED = "Your plan has changed since you opened the page. Here it is as it stands; nothing was charged."
PARTLY = "Your card paid a part of this and was then declined by its bank. Here is what is still open."
PAID_BEFORE = "This was paid already. Nothing was charged twice."
OTHER_CARD = "This card cannot pay any more; nothing was charged. Give another card."
DECLINED = "Your card was declined by its bank; nothing was charged. Try again later, or change the card."
NOT_REACHED = "Your card's bank cannot be reached at the moment. The card was not changed; please try again."


class _NotAsked(Problem):
    """It ended before any card was asked."""


async def find_plan(
    context: Context, consumer_id: UUID, merchant_id: UUID, order_id: UUID
) -> PlanDetail | None:
    """A plan of this consumer; None for anybody else's."""
    return await accounts.plan_of_consumer(context.pool, consumer_id, merchant_id, order_id)


async def pay_early(
    context: Context, detail: PlanDetail, numbers: list[int], expected: int, asker: Asker
) -> None:
    """Pay installments now, one charge each, in order; `expected` is what the page said they add up to, in cents.

    Raises Problem with what to tell the consumer, Limited where that is too often. What was paid before a card said no
    stays paid.
    """
    order = detail.shown.order
    asked = [item for item in owed(detail.shown.plan) if item.number in numbers]
    if len(asked) != len(set(numbers)) or not asked:
        raise Problem(notice=_not_owed(detail.shown.plan, numbers))
    if sum(item.total for item in asked) != expected:
        raise Problem(notice=CHANGED)
    if needs_card(detail.shown.plan):
        raise Problem(notice=OTHER_CARD)
    ask = await count_ask(context, order.order_id, asker, detail.shown.card.card_hash)
    for item in asked:
        try:
            await _pay_one(context, order.merchant_id, order.order_id, item)
        except _NotAsked as said:
            await (give_back if item is asked[0] else free_network)(context, ask)
            raise Problem(notice=said.notice) from None
        except Problem as said:
            if said.notice != DECLINED:
                await free_network(context, ask)
            elif item is not asked[0]:
                raise Problem(notice=PARTLY) from None
            raise
    await note_paid(context, ask)
    await free_network(context, ask)


def _not_owed(plan: Sequence[Installment], numbers: list[int]) -> str:
    paid = {item.number for item in plan if item.paid}
    return PAID_BEFORE if numbers and paid >= set(numbers) else NOT_OWED


async def _pay_one(context: Context, merchant_id: UUID, order_id: UUID, item: Installment) -> None:
    try:
        await pay_now(context, merchant_id, order_id, item.number, item.total)
    except NothingOwed:
        agreed = await plans.read(context.pool, merchant_id, order_id)
        plan = agreed.plan if agreed else ()
        raise _NotAsked(notice=_not_owed(plan, [item.number])) from None
    except CardBusy:
        raise _NotAsked(notice=BUSY) from None
    except Charging:
        raise Problem(notice=BUSY) from None
    agreed = await plans.read(context.pool, merchant_id, order_id)
    assert agreed is not None
    if not agreed.plan[item.number - 1].paid:
        raise Problem(notice=DECLINED)


def overdue(plan: Sequence[Installment]) -> list[Installment]:
    """What a new card is asked for at once."""
    return [item for item in owed(plan) if item.failures]


async def change_card(
    context: Context, detail: PlanDetail, card: CardEntry, expected: int, asker: Asker
) -> None:
    """Another card pays from now on; what is overdue is asked of it at once. Raises Problem, Limited if too often.

    `expected` is what the page said is overdue, in cents. Whether the new card then paid, the plan tells.
    """
    ids = (detail.shown.order.merchant_id, detail.shown.order.order_id)
    ask = await count_ask(context, ids[1], asker)
    try:
        kept = await context.rails.card.tokenize(card)
    except RailUnavailable:
        await give_back(context, ask)
        raise Problem(notice=NOT_REACHED) from None
    known = card_hash(context, kept.fingerprint)
    try:
        of_card = await count_card(context, known)
        changed = await _change(context, *ids, PlanCard(kept.token, kept.brand, kept.last4, known), expected)
    except Problem:
        await free_network(context, ask)
        raise
    for _ in changed:  # one charge each; what this leaves is due for the worker
        await collect(context, *ids)
    agreed = await plans.read(context.pool, *ids) if changed else None
    tried = [agreed.plan[item.number - 1] for item in changed] if agreed else []
    if tried and all(item.paid for item in tried):
        await note_paid(context, ask, of_card)
    # The change has set failures to 1: what is above, the new card's bank declined.
    if not any(item.failures > 1 for item in tried):
        await free_network(context, ask)


async def _change(
    context: Context, merchant_id: UUID, order_id: UUID, new: PlanCard, expected: int
) -> tuple[Installment, ...]:
    """Give the plan its new card; answers what is overdue, to be asked of it at once. Raises Problem."""

    def decide(agreed: Agreed) -> Outcome:
        if sum(item.total for item in overdue(agreed.plan)) != expected:
            raise Problem(notice=CHANGED)
        return collection.change_card(
            agreed.order, agreed.plan, new, context.now(), context.new_id, agreed.card_told
        )

    try:
        return (await settle(context, merchant_id, order_id, decide, plans.read)).outcome.installments
    except CardBusy:
        raise Problem(notice=BUSY) from None
    except NothingOwed:
        raise Problem(notice=NOT_OWED) from None
