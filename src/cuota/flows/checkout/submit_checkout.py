"""The consumer submits the checkout: risk decides, the card pays the first installment, the order is approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.checkout import ending as ends
from cuota.core.checkout.referral import refer
from cuota.core.consumer import Profile
from cuota.core.installment import schedule
from cuota.core.merchant import may_sell
from cuota.core.order.job import JobState, Settled
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Charge
from cuota.core.plan.collection import started
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.payday import timed
from cuota.core.plan.plan import Plan
from cuota.core.risk.review import Review, ReviewState, answer_by
from cuota.db.checkout.loaded import Checkout
from cuota.db.order.orders import Found
from cuota.db.plan.charges import PendingCharge
from cuota.flows.charge_card import (
    AllowRepeat,
    RecordAnswer,
    ask,
    give_up,
    keep_card,
    look,
    look_up,
    note_decline,
    request_again,
    request_of,
)
from cuota.flows.checkout.allow_card import require_allowed
from cuota.flows.checkout.take_step import Problem, ProposedTerms, details_hash, propose
from cuota.flows.context import Context
from cuota.flows.risk.decide_order import Case, Considered, OtherPurchase
from cuota.flows.risk.keep_policy import seal_policy
from cuota.flows.settle import settle
from cuota.rails.card.protocol import CardAnswer, CardHolder, UnknownToken
from cuota.rails.unavailable import RailUnavailable

AGREEMENT_CHANGED = "Something in the agreement has changed since you opened this page. Please read it again."
DETAILS_CHANGED = (
    "The details on this page have changed since you opened it. Please check them before you pay."
)

OTHER_PURCHASE = (
    "Another purchase of yours is being completed. Nothing was charged; please try again in a moment."
)
OTHER_NUMBER = (
    "This order was placed with another phone number. Go back to the first step and confirm that number."
)
NOT_SELLING = "This shop cannot take payments in installments right now. Nothing was charged."
NOT_DECIDING = "Orders cannot be completed right now. Nothing was charged; please try again."

ENTER_AGAIN = "Your card could not be read, and nothing was charged. Please enter it again."
NOT_REACHED = "We cannot reach your card's bank right now. Nothing was charged; please try again shortly."


async def submit_checkout(
    context: Context,
    checkout: Checkout,
    card_token: str,
    agreement_hash: str,
    return_url: str,
    *,
    shown_details: str | None,
) -> Order:
    """Decide, charge, and approve or decline. Return the order in its new state. A referred order waits for a person.

    `card_token` is what the processor's fields gave to the browser. `return_url` is the address to which the consumer comes back
    from a confirmation at the card's bank. `shown_details` is the `details_hash` of the page, or None if the page is from a release
    whose pages did not have the hash. Raises Problem; Final, UnderReview, Charging or Lapsed if the order has changed;
    Forgotten if the consumer was erased.
    """
    ends.require_open(checkout.order, context.now())
    consumer_id, profile, _, _ = _agreed_terms(context, checkout, agreement_hash)
    if shown_details is not None and shown_details != details_hash(checkout):
        raise Problem(notice=DETAILS_CHANGED)
    holder = CardHolder(
        consumer_id, profile.name, profile.email, checkout.order.merchant_id, checkout.order.order_id
    )
    try:
        card = await keep_card(context, card_token, holder)
    except RailUnavailable:
        raise Problem(notice=NOT_REACHED) from None
    except UnknownToken:
        raise Problem(notice=ENTER_AGAIN) from None
    await require_allowed(context, card)
    return await pay_with(context, checkout, card, agreement_hash, return_url)


def _agreed_terms(
    context: Context, checkout: Checkout, agreement_hash: str
) -> tuple[UUID, Profile, str, ProposedTerms]:
    """Return who pays (id, profile, phone) and the agreement; raise Problem if the agreement is not the one that was shown."""
    session = checkout.session
    if session.consumer_id is None or session.profile is None or session.phone is None:
        raise Problem(notice="Confirm your phone number and details first.")
    if checkout.express and session.shipping is None:
        raise Problem(notice="Enter the shipping address first.")
    if checkout.order.review is ReviewState.APPROVED and checkout.reviewed != session.consumer_id:
        # The approval is for another consumer. A submission by this one would only decline that consumer's order.
        raise Problem(notice=OTHER_NUMBER)
    terms = propose(context, checkout, session.profile)
    if terms.agreement.hash != agreement_hash:
        raise Problem(notice=AGREEMENT_CHANGED)
    return session.consumer_id, session.profile, session.phone, terms


async def pay_with(
    context: Context, checkout: Checkout, card: PlanCard, agreement_hash: str, return_url: str
) -> Order:
    """Do the same as `submit_checkout`, with a card that the card rail knows and that may be charged."""
    order, now = checkout.order, context.now()
    ends.require_open(order, now)
    if not may_sell(checkout.merchant, sandbox=context.settings.sandbox):
        raise Problem(notice=NOT_SELLING)
    consumer_id, profile, phone, terms = _agreed_terms(context, checkout, agreement_hash)
    first = terms.plan[0]
    charge = Charge(
        context.new_id(), first.number, first.total, order.currency, card.token, card.brand, card.last4,
        card_hash=card.card_hash,
    )  # fmt: skip
    plan = replace(_agreed(checkout, consumer_id, profile, phone, terms, now), card_hash=card.card_hash)
    case = Case(context, checkout, profile, card, now)
    letter = Notice(context.new_id(), NoticeKind.DECLINED, first.number, order.amount, first.due_on, now)

    def decide_start(considered: Considered) -> Outcome:
        ends.require_open(considered.order, now)
        order, decided = considered.order, case.decide(considered)
        made = decided.decision
        if made.referred:
            until = answer_by(order.expires_at)
            return refer(order, Review(consumer_id, made, terms.zone, now, until, decided.signals), now)
        if not made.approved:
            return ends.decline(order, decided, letter, now)
        return ends.begin(order, plan, charge, decided, now)

    # The order's version protects this save: of twenty submissions at once, one begins a charge, and the others see
    # that charge.
    ids = (order.merchant_id, order.order_id)
    if not await seal_policy(context):
        raise Problem(notice=NOT_DECIDING)
    try:
        outcome = (await settle(context, *ids, decide_start, case.read, save=case.hold.save)).outcome
    except Exception as problem:
        await case.hold.end()
        if isinstance(problem, OtherPurchase):
            raise Problem(notice=OTHER_PURCHASE) from None
        raise
    made = outcome.decision or outcome.review
    if made is not None:
        context.decided(made.decision)
    if outcome.charge is None:
        await case.hold.end()
        return outcome.order
    record = _recorder(context, *ids, charge, plan.first_day, plan.time_zone)
    return await case.hold.end_during(ask(context, request_of(charge, *ids, return_url), record))


def _agreed(
    checkout: Checkout, consumer_id: UUID, payer: Profile, phone: str, terms: ProposedTerms, now: datetime
) -> Plan:
    """Return what the consumer has just agreed to."""
    first = terms.plan[0]
    shipping = checkout.session.shipping if checkout.express else None
    browser = checkout.session.session_hash
    return Plan(
        consumer_id, payer, phone, terms.zone, first.due_on, terms.stored, terms.agreement.hash, now, shipping, browser,
    )  # fmt: skip


async def finish_charge(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge, allow: AllowRepeat
) -> bool:
    """Finish a first charge that had no answer, as a background job. Return False if the card rail still has no answer.

    `allow` says whether a charge that the rail does not know is requested again.
    """
    record = _recorder_of(context, merchant_id, order_id, pending)
    # The consumer may still be at the checkout, and can confirm the first charge of a card there.
    back = f"{context.settings.public_url}/checkout/{merchant_id}/{order_id}"
    asked = request_of(pending.charge, merchant_id, order_id, back)
    return await look_up(context, asked, record, pending.asked_at, allow)


async def look_at_charge(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> str | None:
    """Look up a first charge in progress, for the page. Return the address at which the consumer confirms it, or None."""
    record = _recorder_of(context, merchant_id, order_id, pending)
    return await look(context, request_again(pending, merchant_id, order_id), record)


async def give_up_charge(context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge) -> None:
    """Cancel a first charge that waits for the consumer, who wants to use another card, and record how it ended.

    A charge that the card rail does not know is not changed, because its request may still arrive there.
    """
    record = _recorder_of(context, merchant_id, order_id, pending)
    await give_up(context, request_again(pending, merchant_id, order_id), record)


def _recorder_of(context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge) -> RecordAnswer:
    return _recorder(context, merchant_id, order_id, pending.charge, pending.first_day, pending.zone)


def _recorder(
    context: Context, merchant_id: UUID, order_id: UUID, charge: Charge, first_day: date, zone: str
) -> RecordAnswer:
    movement_id = context.new_id()

    async def record(answer: CardAnswer) -> Order:
        state = JobState.SUCCEEDED if answer.approved else JobState.FAILED
        settled = Settled(charge.charge_id, state, answer.reason)
        await note_decline(context, charge, answer)

        def decide_end(found: Found) -> Outcome | None:
            order, now = found.order, context.now()
            if order.charging != charge.charge_id:
                # The answer is already recorded: by the worker, or by our own earlier save whose result we lost.
                return None
            if not answer.approved:
                return ends.card_failed(order, settled, now)
            agreed = schedule(order.amount, order.fee, first_day)
            agreed[0] = replace(agreed[0], charge_id=charge.charge_id)
            plan = timed(agreed, ZoneInfo(zone), now)
            notice = started(plan, context.new_id(), now)
            days = context.settings.authorization_days
            return ends.approve(order, plan, settled, movement_id, notice, now, days, found.terms)

        return (await settle(context, merchant_id, order_id, decide_end)).order

    return record
