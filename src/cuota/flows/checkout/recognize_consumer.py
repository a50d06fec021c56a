"""A returning consumer in a known browser pays with one click, with the card of the latest plan in that browser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from cuota.core.checkout.ending import Charging, require_open
from cuota.core.checkout.start import Display
from cuota.core.consumer import Consumer, Profile
from cuota.core.order.order import Order
from cuota.core.plan.card import PlanCard
from cuota.core.plan.collection import needs_card
from cuota.db.checkout import checkouts, consumers
from cuota.db.checkout.loaded import Checkout
from cuota.db.order import orders
from cuota.db.plan import plans
from cuota.db.risk import history
from cuota.db.row_security import everyone
from cuota.flows.checkout.allow_card import is_allowed
from cuota.flows.checkout.remember_browser import who_is_remembered
from cuota.flows.checkout.submit_checkout import AGREEMENT_CHANGED, pay_with
from cuota.flows.checkout.take_step import Problem, propose
from cuota.flows.context import Context

NOT_KNOWN = "Your card is no longer remembered in this browser. Confirm your phone number to continue."


@dataclass(frozen=True, slots=True)
class Offer:
    """The consumer and the card that can pay. It is shown only to the browser that holds the token."""

    consumer: Consumer
    profile: Profile
    card: PlanCard


async def find_offer(context: Context, checkout: Checkout, token: str | None) -> Offer | None:
    """Return what this browser may be offered in this checkout, or None for the normal steps.

    There is no offer in a frame, because a frame has no cookies; none if the order asks for a shipping address first;
    none if the merchant names another number; and none if the card networks do not allow another charge of the card.
    """
    if token is None or checkout.verified or checkout.express or checkout.display is Display.IFRAME:
        return None
    known = await who_is_remembered(context, token)
    if known is None:
        return None
    consumer = await consumers.read(context.pool, known.consumer_id)
    # The latest plan may be from any merchant.
    with everyone():
        agreed = await plans.read(context.pool, known.merchant_id, known.order_id)
    if consumer is None or consumer.profile is None or agreed is None:
        return None
    # Earlier releases could remember a consumer with another consumer's plan of the same order.
    if agreed.payer_id != known.consumer_id or agreed.ended or needs_card(agreed.plan):
        return None
    if checkout.document.consumer.get("phoneNumber") not in {None, consumer.phone}:
        return None
    return Offer(consumer, consumer.profile, agreed.card) if await is_allowed(context, agreed.card) else None


async def pay_again(
    context: Context, checkout: Checkout, token: str | None, agreement_hash: str, return_url: str
) -> tuple[Checkout, Order]:
    """Pay with the offered card. Return the checkout, which now belongs to this consumer, and the order.

    Raises the same exceptions as `submit_checkout`. Before anything else, the agreement's text is compared with the
    text that was shown.
    """
    require_open(checkout.order, context.now())
    offer = await find_offer(context, checkout, token)
    if offer is None:
        raise await _not_offered(context, checkout)
    now, who = context.real_now(), offer.consumer
    session = replace(
        checkout.session, verified_at=now, consumer_id=who.consumer_id, phone=who.phone, profile=offer.profile
    )
    theirs = replace(checkout, session=session)
    terms = propose(context, theirs, offer.profile)
    if terms.agreement.hash != agreement_hash:
        raise Problem(notice=AGREEMENT_CHANGED)
    if not await _recognize(context, theirs, who.consumer_id, token):
        raise await _not_offered(context, checkout)
    return theirs, await pay_with(context, theirs, offer.card, agreement_hash, return_url)


async def _not_offered(context: Context, checkout: Checkout) -> Problem:
    """Return why the card is no longer offered. Raises Final or Charging if an earlier click used the token."""
    order = checkout.order
    found = await orders.read_with_plan(context.pool, order.merchant_id, order.order_id)
    if found is not None:
        require_open(found.order, context.now())
    if checkout.verified:
        # An earlier click has recognized the consumer, and its charge has not begun yet.
        raise Charging
    return Problem(notice=NOT_KNOWN)


async def _recognize(context: Context, theirs: Checkout, consumer_id: UUID, token: str | None) -> bool:
    """Bind the session to this consumer, as after a code: the session may try another card, and can see the plan.

    Returns False if the browser was forgotten. An erasure locks the same row, so either the erasure is
    finished, or it finds this session.
    """
    async with context.pool.session() as connection, connection.transaction():
        await history.lock(connection, consumer_id)
        if await who_is_remembered(context, token, connection) is None:
            return False
        await checkouts.recognized(connection, theirs.key, theirs.session)
    return True
