"""Collects the installments of a plan: sends reminders, charges the card on the due day, and retries failed charges."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan import collection, missed, unsent
from cuota.core.plan.charge import Charge, Origin
from cuota.db.plan import charges, declines, plans
from cuota.db.plan.charges import PendingCharge
from cuota.db.plan.plans import Agreed
from cuota.db.session import Session
from cuota.flows import charge_card
from cuota.flows.charge_card import AllowRepeat, RecordAnswer
from cuota.flows.context import Context
from cuota.flows.plan.limit_asks import note_paid_later
from cuota.flows.plan.return_late_charge import settle_unsent
from cuota.flows.settle import settle
from cuota.rails.bounded import SECONDS
from cuota.rails.card.protocol import CardAnswer

# A request that began before this time has ended, even if its call took as long as a call may take.
assert unsent.SURE_AFTER.total_seconds() >= 10 * SECONDS
ReadAgreed = Callable[[Session, UUID, UUID], Awaitable[Agreed | None]]


async def collect(context: Context, merchant_id: UUID, order_id: UUID, return_url: str | None = None) -> None:
    """Do the due work of a plan: remind the consumer, or charge the card. A payment whose day was missed is announced first.

    Charges nothing while a charge is in progress. `return_url` is given if the consumer is at the page now, and can confirm the charge at the card's bank.
    """
    charge_id = context.new_id()

    def decide(agreed: Agreed) -> Outcome | None:
        order, plan, now = agreed.order, agreed.plan, context.now()
        return (
            collection.remind(order, plan, agreed.zone, now, context.new_id, refused=agreed.ended)
            or collection.give_up(order, plan, agreed.zone, now, context.new_id, refused=agreed.refused)
            or missed.postpone(order, plan, agreed.zone, now, context.new_id)
            or collection.begin(order, plan, None, agreed.card, charge_id, now, agreed.declined_at)
            or collection.reschedule(order, plan, now)
        )

    with contextlib.suppress(collection.CardBusy, Charging):
        outcome = (await settle(context, merchant_id, order_id, decide, _read_due(context))).outcome
        if outcome is not None and outcome.charge is not None:
            await ask_for(context, merchant_id, order_id, outcome.charge, return_url)


async def _read_to_charge(session: Session, merchant_id: UUID, order_id: UUID) -> Agreed | None:
    """Read an order and its plan, and the declines of its card in all plans."""
    agreed = await plans.read(session, merchant_id, order_id)
    return None if agreed is None else await _with_declines(session, agreed)


async def _with_declines(session: Session, agreed: Agreed) -> Agreed:
    """Add the declines of the card in all plans. For a card without a fingerprint, only declines in its own plan are known.

    Declines that an earlier release recorded are known only in their own plan, so the longer of the two lists counts. After a
    change in hardship, the new payments have no failures yet. Then the earlier charges determine whether the card may be
    charged at all.
    """
    if agreed.card.card_hash is None:
        return replace(agreed, refused=agreed.ended)
    found = await declines.of_card(session, agreed.card.card_hash)
    longer = max(agreed.declined_at, found.declined_at, key=len)
    return replace(agreed, declined_at=longer, refused=agreed.ended or found.final)


def _read_due(context: Context) -> ReadAgreed:
    """Return a function that reads an order and its plan, and its card's declines if a payment is due."""

    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Agreed | None:
        agreed = await plans.read(session, merchant_id, order_id)
        if agreed is None or agreed.order.charging is not None:
            return agreed
        now = context.now()
        due = any(item.charge_at is not None and item.charge_at <= now for item in agreed.plan)
        return await _with_declines(session, agreed) if due else agreed

    return read


async def pay_now(
    context: Context, merchant_id: UUID, order_id: UUID, number: int, expected: int, return_url: str
) -> Order:
    """Charge one installment to the plan's card now, for the consumer, and return the order after that.

    `expected` is the amount that the page showed, in cents. Raises CardBusy while another charge is in progress; PlanPaused while a
    dispute is open; CardExhausted if the card was declined too often or finally; NothingOwed if the installment is paid, canceled
    or unknown, or its amount has changed; and Charging if the card rail has not answered yet.
    """
    charge_id = context.new_id()

    def decide(agreed: Agreed) -> Outcome:
        if agreed.order.paused_at is not None:
            raise collection.PlanPaused
        outcome = collection.begin(
            agreed.order, agreed.plan, number, agreed.card, charge_id, context.now(), agreed.declined_at
        )
        if agreed.refused:
            raise collection.CardExhausted
        assert outcome is not None
        assert outcome.charge is not None
        if outcome.charge.amount != expected:
            raise collection.NothingOwed
        return outcome

    charge = (await settle(context, merchant_id, order_id, decide, _read_to_charge)).outcome.charge
    assert charge is not None
    return await ask_for(context, merchant_id, order_id, charge, return_url)


async def ask_for(
    context: Context, merchant_id: UUID, order_id: UUID, charge: Charge, return_url: str | None = None
) -> Order:
    """Call the card rail for a charge that is already recorded, and record the answer. Returns the order after that."""
    asked = charge_card.request_of(charge, merchant_id, order_id, return_url)
    return await charge_card.ask(context, asked, _recorder(context, merchant_id, order_id, charge))


async def finish_collection(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> bool:
    """Look up a charge without an answer, as a background job. Returns False if the card rail still has no answer.

    A charge that waits for the consumer to confirm it is canceled if a void, refund or dispute has changed its payment.
    """
    agreed = await plans.read(context.pool, merchant_id, order_id)
    if agreed is not None and collection.outdated(agreed.order, agreed.plan, pending.charge):
        await give_up_collection(context, merchant_id, order_id, pending)
    record = _recorder(context, merchant_id, order_id, pending.charge, looked_up=True)
    asked = charge_card.request_again(pending, merchant_id, order_id)
    allow = _allow_repeat(context, merchant_id, order_id, pending.charge)
    return await charge_card.look_up(context, asked, record, pending.asked_at, allow)


@dataclass(frozen=True, slots=True)
class _Unsent:
    """A charge that the rail did not know, read again with everything that allows it. None if it has ended."""

    agreed: Agreed
    pending: PendingCharge | None

    @property
    def order(self) -> Order:
        return self.agreed.order


async def _read_unsent(session: Session, merchant_id: UUID, order_id: UUID) -> _Unsent | None:
    agreed = await _read_to_charge(session, merchant_id, order_id)
    # Read this after the order: if a dispute closes in between, the order's version is stale and nothing is saved.
    pending = await charges.pending(session, merchant_id, order_id)
    return None if agreed is None else _Unsent(agreed, pending)


def _allow_repeat(context: Context, merchant_id: UUID, order_id: UUID, charge: Charge) -> AllowRepeat:
    """Return a function that decides about a charge that the rail does not know: request it again, wait, or end it."""

    async def allow(looked_up_at: datetime) -> bool:
        def decide(read: _Unsent) -> tuple[Outcome | None, datetime | None]:
            agreed, pending, now = read.agreed, read.pending, context.now()
            order, plan = agreed.order, agreed.plan
            if order.charging != charge.charge_id or pending is None:
                return None, None
            known = {"refused": agreed.refused, "disputed": pending.disputed}
            if unsent.may_repeat(order, plan, charge, now, **known):
                return unsent.request_again(order, now), None
            return unsent.end(order, plan, charge, looked_up_at, now), order.charging_since

        ids = (merchant_id, order_id, charge.charge_id)
        outcome = await settle_unsent(context, *ids, decide, _read_unsent)
        return outcome is not None and outcome.order.charging is not None

    return allow


async def look_at_collection(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> str | None:
    """Look up a charge in progress, for the page. Return the address at which the consumer confirms it, or None."""
    record = _recorder(context, merchant_id, order_id, pending.charge, looked_up=True)
    return await charge_card.look(context, charge_card.request_again(pending, merchant_id, order_id), record)


async def give_up_collection(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> None:
    """Cancel a charge that waits for the consumer to confirm it, and record how it ended."""
    record = _recorder(context, merchant_id, order_id, pending.charge, looked_up=True)
    await charge_card.give_up(context, charge_card.request_again(pending, merchant_id, order_id), record)


def _recorder(
    context: Context, merchant_id: UUID, order_id: UUID, charge: Charge, *, looked_up: bool = False
) -> RecordAnswer:
    """Return the function that records the rail's answer. `looked_up`: the answer comes after the request that made the charge."""

    async def record(answer: CardAnswer) -> Order:
        await charge_card.note_decline(context, charge, answer)

        def decide(agreed: Agreed) -> Outcome | None:
            order, plan, zone = agreed.order, agreed.plan, agreed.zone
            if order.charging != charge.charge_id:
                # The answer is already recorded: by the worker, or by our own earlier save whose result we lost.
                return None
            if answer.approved:
                return collection.paid(order, plan, charge, zone, context.now(), context.new_id)
            reason = answer.reason or "card_declined"
            return collection.failed(order, plan, charge, reason, zone, context.now(), context.new_id)

        done = await settle(context, merchant_id, order_id, decide, plans.read)
        if looked_up and done.outcome and answer.approved and charge.origin is Origin.CONSUMER:
            await note_paid_later(context, order_id, done.found.payer_id, done.found.card.card_hash)
        return done.order

    return record
