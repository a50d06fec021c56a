"""The consumer presses the button: risk decides, the card pays the first installment, the order is approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from uuid import UUID

from cuota.core import checkout as ends
from cuota.core.card import CardEntry
from cuota.core.decision import Facts, decide
from cuota.core.installment import schedule
from cuota.core.order import Final, Order
from cuota.core.outcome import Charge, JobState, Outcome, Plan, Settled
from cuota.db import charges, orders
from cuota.db.orders import Found, Session
from cuota.flows.checkout import Checkout, Problem, propose
from cuota.flows.context import Context
from cuota.flows.settle import Decide, settle
from cuota.rails.card import Answer, RailUnavailable

AGREEMENT_CHANGED = "The dates have changed since you opened this page. Please read the agreement again."

NOT_REACHED = "Your card's bank cannot be reached at the moment. Nothing was charged; please try again."


async def submit_checkout(
    context: Context, checkout: Checkout, card: CardEntry, agreement_hash: str
) -> Order:
    """Decide, charge, approve or not; answers the order as it then is.

    Raises Problem, or Final, Charging, Lapsed where the order went another way meanwhile.
    """
    order, session = checkout.order, checkout.session
    now = context.now()
    ends.require_open(order, now)
    if session.consumer_id is None or session.profile is None or session.phone is None:
        raise Problem(notice="Confirm your phone number and details first.")
    terms = propose(context, checkout, session.profile)
    if terms.agreement.hash != agreement_hash:
        raise Problem(notice=AGREEMENT_CHANGED)
    facts = Facts(order.amount, order.currency, session.profile.surname, context.settings.sandbox)
    decision = decide(facts)
    if not decision.approved:
        declined = await _settle(context, order, lambda found: ends.decline(found.order, decision, now))
        return declined.order
    try:
        kept = await context.rails.card.tokenize(card)
    except RailUnavailable:
        raise Problem(notice=NOT_REACHED) from None
    first = terms.plan[0]
    charge = Charge(context.new_id(), first.number, first.total, kept.token, kept.brand, kept.last4)
    text = terms.agreement
    plan = Plan(
        session.consumer_id,
        session.profile,
        session.phone,
        terms.zone,
        first.due_on,
        text.text,
        text.hash,
        now,
    )
    # Saved with the order's version: of twenty presses at once one begins, the others see it charging.
    await _settle(context, order, lambda found: ends.begin(found.order, plan, charge, decision, now))
    return await charge_card(context, order.merchant_id, order.order_id, charge, plan.first_day)


async def charge_card(
    context: Context, merchant_id: UUID, order_id: UUID, charge: Charge, first_day: date
) -> Order:
    """Ask the rail and record its word. Raises Charging where there is none yet: the worker looks it up."""
    try:
        answer = await context.rails.card.charge(charge.charge_id, charge.card_token, charge.amount, "USD")
    except RailUnavailable:
        raise ends.Charging from None
    return await _record(context, merchant_id, order_id, charge, first_day, answer)


async def finish_charge(context: Context, merchant_id: UUID, order_id: UUID) -> bool:
    """The worker's way: a charge whose answer was lost is looked up, and asked for again only under its own key.

    False where the rail has no answer yet.
    """
    pending = await charges.pending(context.pool, merchant_id, order_id)
    if pending is None:
        return True
    charge = pending.charge
    try:
        answer = await context.rails.card.find_charge(charge.charge_id)
        if answer is None:
            await charge_card(context, merchant_id, order_id, charge, pending.first_day)
        else:
            await _record(context, merchant_id, order_id, charge, pending.first_day, answer)
    except (RailUnavailable, ends.Charging):
        return False
    return True


async def _record(
    context: Context, merchant_id: UUID, order_id: UUID, charge: Charge, first_day: date, answer: Answer
) -> Order:
    state = JobState.SUCCEEDED if answer.approved else JobState.FAILED
    settled = Settled(charge.charge_id, state, answer.reason)
    movement_id = context.new_id()

    def decide_end(found: Found) -> Outcome:
        order, now = found.order, context.now()
        if order.charging != charge.charge_id:
            raise Final(order.status)
        if not answer.approved:
            return ends.card_failed(order, settled, now)
        plan = schedule(order.amount, order.fee, first_day)
        plan[0] = replace(plan[0], charge_id=charge.charge_id)
        days = context.settings.authorization_days
        return ends.approve(order, plan, settled, movement_id, now, days)

    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, merchant_id, order_id)

    try:
        outcome = await settle(context, merchant_id, order_id, read, decide_end)
    except Final:
        # Recorded already: by the worker, or by a save whose answer was lost.
        found = await read(context.pool)
        assert found is not None
        return found.order
    return outcome.order


async def _settle(context: Context, order: Order, decide_end: Decide) -> Outcome:
    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, order.merchant_id, order.order_id)

    return await settle(context, order.merchant_id, order.order_id, read, decide_end)
