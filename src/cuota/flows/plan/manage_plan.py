"""The actions of a consumer on a plan's page: pay early, pay off, change the card."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.checkout.ending import Charging
from cuota.core.installment import Installment, owed
from cuota.core.order.outcome import Outcome
from cuota.core.plan import new_card
from cuota.core.plan.card import PlanCard
from cuota.core.plan.collection import CardBusy, CardExhausted, NothingOwed, PlanPaused
from cuota.core.plan.onward import Onward
from cuota.db.checkout import consumers
from cuota.db.plan import accounts, charges, plans
from cuota.db.plan.accounts import PlanDetail
from cuota.db.plan.plans import Agreed
from cuota.flows.afterwards import DATABASE_FAILED, afterwards
from cuota.flows.charge_card import keep_card
from cuota.flows.checkout.allow_card import CHARGED_BACK, OTHER_CARD, require_allowed
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context
from cuota.flows.plan.collect_installments import collect, pay_now
from cuota.flows.plan.limit_asks import (
    Asker,
    count_ask,
    count_card,
    count_next,
    free_network,
    give_back,
    note_paid,
)
from cuota.flows.settle import settle
from cuota.rails.card.protocol import CardHolder, UnknownToken
from cuota.rails.unavailable import RailUnavailable

BUSY = "A payment for this plan is in progress. Check again in a minute; nothing is charged twice."
NOT_OWED = "This payment is no longer due. Here is your plan as it is now."
CHANGED = "Your plan has changed since you opened the page. Here it is as it is now; nothing was charged."
PAUSED = "Payments are paused while a dispute about this order is open. Nothing was charged."
PARTLY = "Your card paid part of this and was then declined by its bank. Here is what you still owe."
NOT_ALL = "Your card paid part of this. We could not finish the rest; nothing is charged twice. Here is what you still owe."
PAID_BEFORE = "You already paid this. Nothing was charged twice."
DECLINED = "Your card was declined by its bank; nothing was charged. Try again later, or change the card."
ENTER_AGAIN = "Your card could not be read, and was not changed. Please enter it again."
NOT_REACHED = "We cannot reach your card's bank right now. The card was not changed; please try again."
log = logging.getLogger("cuota.request")


class _NotCharged(Problem):
    """The request ended before any card was charged."""


class InProgress(Problem):
    """The card's bank has not answered yet, or waits for the consumer. `onward` has the payments that are left to charge."""

    def __init__(self, onward: Onward) -> None:
        super().__init__(notice=BUSY)
        self.onward = onward


async def find_plan(
    context: Context, consumer_id: UUID, merchant_id: UUID, order_id: UUID
) -> PlanDetail | None:
    """Return a plan of this consumer, or None if the plan does not exist or belongs to another consumer."""
    return await accounts.plan_of_consumer(context.pool, consumer_id, merchant_id, order_id)


async def pay_early(
    context: Context, detail: PlanDetail, numbers: list[int], expected: int, asker: Asker
) -> None:
    """Pay installments now, in order, with one charge for each. `expected` is the sum that the page showed, in cents.

    Raises Problem with a text for the consumer, or Limited if the rate limit is reached. If the card declines one charge, the
    installments before it stay paid. InProgress if the consumer must confirm a charge at the card's bank: the installments
    after it are not charged. After the first payment, errors of the database are also raised as Problem.
    """
    order = detail.shown.order
    chosen = [item for item in owed(detail.shown.plan) if item.number in numbers]
    if len(chosen) != len(set(numbers)) or not chosen:
        raise Problem(notice=_not_owed(detail.shown.plan, numbers))
    if sum(item.total for item in chosen) != expected:
        raise Problem(notice=CHANGED)
    # The form may have been opened before the dispute.
    if order.paused_at is not None:
        raise Problem(notice=PAUSED)
    if detail.shown.needs_card:
        raise Problem(notice=OTHER_CARD)
    ask = await count_next(context, order.merchant_id, order.order_id, asker, detail.shown.card.card_hash)
    for place, item in enumerate(chosen, 1):
        onward = Onward(item.number, tuple(later.number for later in chosen[place:]))
        try:
            pay = _pay_one if item is chosen[0] else _pay_next
            await pay(context, order.merchant_id, order.order_id, item, onward)
        except _NotCharged as problem:
            await (give_back if item is chosen[0] else free_network)(context, ask)
            raise Problem(notice=problem.notice) from None
        except Problem as problem:
            if problem.notice != DECLINED:
                await free_network(context, ask)
            elif item is not chosen[0]:
                raise Problem(notice=PARTLY) from None
            raise
    await note_paid(context, ask)
    await free_network(context, ask)


def _not_owed(plan: Sequence[Installment], numbers: list[int]) -> str:
    paid = {item.number for item in plan if item.paid}
    return PAID_BEFORE if numbers and paid >= set(numbers) else NOT_OWED


def _page_of(context: Context, merchant_id: UUID, order_id: UUID, onward: Onward | None = None) -> str:
    """Return the address of the plan's page, to which the consumer comes back from a confirmation at the card's bank."""
    query = f"?{onward.query}" if onward and onward.then else ""
    return f"{context.settings.public_url}/account/plans/{merchant_id}/{order_id}{query}"


async def _pay_one(
    context: Context, merchant_id: UUID, order_id: UUID, item: Installment, onward: Onward
) -> None:
    back = _page_of(context, merchant_id, order_id, onward)
    try:
        await pay_now(context, merchant_id, order_id, item.number, item.total, back)
    except NothingOwed:
        agreed = await plans.read(context.pool, merchant_id, order_id)
        plan = agreed.plan if agreed else ()
        raise _NotCharged(notice=_not_owed(plan, [item.number])) from None
    except CardBusy:
        raise _NotCharged(notice=BUSY) from None
    except PlanPaused:
        raise _NotCharged(notice=PAUSED) from None
    except CardExhausted:
        raise _NotCharged(notice=OTHER_CARD) from None
    except Charging:
        raise InProgress(onward) from None
    try:
        agreed = await plans.read(context.pool, merchant_id, order_id)
    except DATABASE_FAILED:
        # The answer is recorded, and the plan's page shows it.
        raise InProgress(onward) from None
    assert agreed is not None
    if not agreed.plan[item.number - 1].paid:
        raise Problem(notice=DECLINED)


async def _pay_next(
    context: Context, merchant_id: UUID, order_id: UUID, item: Installment, onward: Onward
) -> None:
    """Pay an installment after another one was paid.

    If the database fails now, the response must still report the earlier payment.
    """
    try:
        await _pay_one(context, merchant_id, order_id, item, onward)
    except DATABASE_FAILED as problem:
        facts = {"orderId": str(order_id), "problem": type(problem).__name__}
        log.warning("not all was paid", extra={"facts": facts})
        raise Problem(notice=NOT_ALL) from None


def overdue(context: Context, detail: PlanDetail) -> list[Installment]:
    """Return the installments that a new card is charged for at once."""
    shown = detail.shown
    return new_card.due_for_new_card(shown.order, shown.plan, ZoneInfo(shown.zone), context.now())


async def change_card(
    context: Context, detail: PlanDetail, card_token: str, expected: int, asker: Asker
) -> None:
    """Change the card of the plan, and charge overdue installments to the new card at once.

    `expected` is the overdue sum that the page showed, in cents. Raises Problem with a text for the consumer, or Limited if the
    rate limit is reached. The plan shows whether the new card then paid. After the card is changed, no exception is raised.
    """
    ids = (detail.shown.order.merchant_id, detail.shown.order.order_id)
    ask = await count_ask(context, ids[1], asker)
    try:
        new = await keep_card(context, card_token, await _holder(context, asker, *ids))
    except (RailUnavailable, UnknownToken) as problem:
        await give_back(context, ask)
        raise Problem(notice=ENTER_AGAIN if isinstance(problem, UnknownToken) else NOT_REACHED) from None
    try:
        of_card = await count_card(context, new.card_hash)
        await require_allowed(context, new)
        await _require_no_loss(context, *ids, new)
        await charges.keep_card_hash(context.pool, *ids)
        changed = await _change(context, *ids, new, expected)
    except Problem:
        await free_network(context, ask)
        raise
    with afterwards("what a new card did"):
        for _ in changed:  # one charge for each; the worker charges any that remain
            await collect(context, *ids, _page_of(context, *ids))
        agreed = await plans.read(context.pool, *ids) if changed else None
        tried = [agreed.plan[item.number - 1] for item in changed] if agreed else []
        if tried and all(item.paid for item in tried):
            await note_paid(context, ask, of_card)
        # The change of the card has set `failures` to 1. A higher number means that the new card declined.
        if not any(item.failures > 1 for item in tried):
            await free_network(context, ask)


async def _require_no_loss(context: Context, merchant_id: UUID, order_id: UUID, card: PlanCard) -> None:
    if await charges.has_lost(context.pool, merchant_id, order_id, card.card_hash):
        raise Problem(notice=CHARGED_BACK)


async def _holder(context: Context, asker: Asker, merchant_id: UUID, order_id: UUID) -> CardHolder:
    consumer_id = context.vault.consumer_id(asker.phone)
    consumer = await consumers.read(context.pool, consumer_id)
    profile = consumer.profile if consumer else None
    name, email = (profile.name, profile.email) if profile else ("", "")
    return CardHolder(consumer_id, name, email, merchant_id, order_id)


async def _change(
    context: Context, merchant_id: UUID, order_id: UUID, new: PlanCard, expected: int
) -> tuple[Installment, ...]:
    """Store the plan's new card. Return the overdue installments, which are charged at once. Raises Problem."""

    def decide(agreed: Agreed) -> Outcome:
        due = new_card.due_for_new_card(agreed.order, agreed.plan, agreed.zone, context.now())
        if sum(item.total for item in due) != expected:
            raise Problem(notice=CHANGED)
        return new_card.change_card(
            agreed.order, agreed.plan, new, agreed.zone, context.now(), context.new_id, agreed.card_told
        )

    try:
        changed = (await settle(context, merchant_id, order_id, decide, plans.read)).outcome.installments
        return tuple(item for item in changed if item.charge_at is not None and item.failures)
    except CardBusy:
        raise Problem(notice=BUSY) from None
    except NothingOwed:
        raise Problem(notice=NOT_OWED) from None
