"""A returning consumer, in a browser that knows them: the card of their latest plan there pays with one press."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from cuota.core.checkout.ending import require_open
from cuota.core.checkout.start import Display
from cuota.core.consumer import Consumer, Profile
from cuota.core.order.order import Order
from cuota.core.order.outcome import PlanCard
from cuota.core.plan.collection import needs_card
from cuota.db.checkout import checkouts, consumers
from cuota.db.order import orders
from cuota.db.plan import plans
from cuota.db.risk import history
from cuota.db.row_security import everyone
from cuota.flows.checkout.remember_browser import who_is_remembered
from cuota.flows.checkout.submit_checkout import AGREEMENT_CHANGED, pay_with
from cuota.flows.checkout.take_step import Checkout, Problem, propose
from cuota.flows.context import Context, utc_now

NOT_KNOWN = "This browser does not know your card any more. Confirm your phone number to go on."


@dataclass(frozen=True, slots=True)
class Offer:
    """Who may pay with what. Shown only to the browser that holds the token."""

    consumer: Consumer
    profile: Profile
    card: PlanCard


async def find_offer(context: Context, checkout: Checkout, token: str | None) -> Offer | None:
    """What this browser may be offered in this checkout; None: everything goes as in any other browser.

    Not in a frame, where there are no cookies; not where the order asks for an address first, nor where the merchant
    names somebody else's number.
    """
    if token is None or checkout.verified or checkout.express or checkout.display is Display.IFRAME:
        return None
    known = await who_is_remembered(context, token)
    if known is None:
        return None
    consumer = await consumers.read(context.pool, known.consumer_id)
    # Agreed to at whatever merchant it was.
    with everyone():
        agreed = await plans.read(context.pool, known.merchant_id, known.order_id)
    if consumer is None or consumer.profile is None or agreed is None or needs_card(agreed.found.plan):
        return None
    if checkout.document.consumer.get("phoneNumber") not in {None, consumer.phone}:
        return None
    return Offer(consumer, consumer.profile, agreed.card)


async def pay_again(
    context: Context, checkout: Checkout, token: str | None, agreement_hash: str
) -> tuple[Checkout, Order]:
    """Pay with the offered card; answers the checkout as this consumer's, and the order as it then is.

    Raises what `submit_checkout` does. The agreement's text is held against what was shown, before anything else.
    """
    require_open(checkout.order, context.now())
    offer = await find_offer(context, checkout, token)
    if offer is None:
        raise await _not_offered(context, checkout)
    now, who = utc_now(), offer.consumer
    session = replace(
        checkout.session, verified_at=now, consumer_id=who.consumer_id, phone=who.phone, profile=offer.profile
    )
    theirs = replace(checkout, session=session)
    terms = propose(context, theirs, offer.profile)
    if terms.agreement.hash != agreement_hash:
        raise Problem(notice=AGREEMENT_CHANGED)
    if not await _recognize(context, theirs, who.consumer_id, token):
        raise await _not_offered(context, checkout)
    return theirs, await pay_with(context, theirs, offer.card, agreement_hash)


async def _not_offered(context: Context, checkout: Checkout) -> Problem:
    """Why the card is not offered any more. Raises Final or Charging where an earlier press of the button used the token up."""
    order = checkout.order
    found = await orders.read_with_plan(context.pool, order.merchant_id, order.order_id)
    if found is not None:
        require_open(found.order, context.now())
    return Problem(notice=NOT_KNOWN)


async def _recognize(context: Context, theirs: Checkout, consumer_id: UUID, token: str | None) -> bool:
    """The session is this consumer's, as after a code: it may try another card, and sees its plan.

    False where the browser was forgotten meanwhile. An erasure holds the same row: it is over, or finds this session.
    """
    async with context.pool.session() as connection, connection.transaction():
        await history.lock(connection, consumer_id)
        if await who_is_remembered(context, token, connection) is None:
            return False
        await checkouts.recognized(connection, theirs.key, theirs.session)
    return True
