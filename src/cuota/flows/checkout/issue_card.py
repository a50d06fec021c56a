"""Issues the card of an approved virtual-card order once, and shows it to one browser for a few minutes."""

from __future__ import annotations

import logging
from datetime import timedelta

from cuota.core.money import decimal_from
from cuota.core.order.order import Order, Status
from cuota.core.refusal import Refused
from cuota.db.checkout import virtual_cards
from cuota.db.checkout.loaded import Checkout
from cuota.db.checkout.virtual_cards import ToTell
from cuota.db.order import orders
from cuota.db.pool import unavailable
from cuota.flows.context import Context
from cuota.rails.issuing import IssuingRail, VirtualCard
from cuota.rails.unavailable import RailUnavailable

# This uses the real clock, like everything that guards access. A browser can fetch a lost answer again, but not an hour
# later.
SHOWN_FOR = timedelta(minutes=10)
BATCH = 100
LONGEST_WAIT = timedelta(hours=1)
COUNTRY = "US"
log = logging.getLogger("cuota.work")


def issues_cards(context: Context) -> bool:
    """Return whether virtual-card checkouts are possible at all. Check this before opening one."""
    return context.rails.issuing is not None


async def reveal_card(context: Context, checkout: Checkout) -> dict[str, object] | None:
    """Return the argument of `onComplete` of a virtual-card checkout, with the card in plain text.

    Never store, log or cache it.

    Returns None if there is nothing to show to this browser: the order is not a virtual-card order, or not approved; the
    order was voided, or captured in another way; another browser paid; or ten minutes have passed since the card was
    first shown. The consumer must then contact the merchant, who voids the order. Raises Refused(unavailable) while the
    issuer does not answer; the page can then be loaded again.
    """
    order, session = checkout.order, checkout.session
    rail = context.rails.issuing
    if rail is None or order.status is not Status.APPROVED or not checkout.verified:
        return None
    if session.profile is None or session.phone is None:
        return None
    ids = (order.merchant_id, order.order_id)
    if not await virtual_cards.is_virtual(context.pool, *ids):
        return None
    now = context.real_now()
    kept = await virtual_cards.claim(context.pool, *ids, context.new_id(), session.session_hash, now)
    # Read the order after the claim. A void after this point finds the card and lowers its limit.
    found = await orders.read_with_plan(context.pool, *ids)
    if kept is None or found is None or not found.order.capturable:
        return None
    try:
        if kept.issued_at is None:
            await _issue(context, rail, found.order, kept)
        # The ten minutes begin when the card is shown, not while the issuer does not answer.
        card = await rail.reveal(kept.key)
        if card is None or not await virtual_cards.revealed(context.pool, *ids, now, SHOWN_FOR):
            return None
    except RailUnavailable:
        raise unavailable("The card's issuer does not answer. Load the page again shortly.", 2) from None
    return _result(checkout, card)


async def _issue(context: Context, rail: IssuingRail, order: Order, kept: virtual_cards.StoredCard) -> None:
    ids = (order.merchant_id, order.order_id)
    await rail.issue(kept.key, *ids, order.amount - order.voided, order.currency)
    await virtual_cards.issued(context.pool, *ids, context.now())


def _result(checkout: Checkout, card: VirtualCard) -> dict[str, object]:
    profile, phone = checkout.session.profile, checkout.session.phone
    assert profile is not None
    home = profile.address
    where = {
        "address1": home.line1,
        "address2": home.line2,
        "city": home.city,
        "state": home.state,
        "postalCode": home.postcode,
        "country": COUNTRY,
    }
    names = {"firstName": profile.given_names, "lastName": profile.surname}
    fee = checkout.order.fee
    return {
        "card": {
            "number": card.number,
            "cvc": card.cvc,
            "expirationMonth": f"{card.month:02d}",
            "expirationYear": str(card.year),
            "brand": card.brand,
        },
        "cardholder": {"name": profile.name, **names, **where},
        "customer": {**names, "email": profile.email, "phoneNumber": phone, **where},
        "orderId": str(checkout.order.order_id),
        **({"merchantFeeForPaymentPlan": decimal_from(fee)} if fee else {}),
    }


async def tell_limits(context: Context) -> int:
    """Lower the card's limit after a void, as a background job. Return how many cards were due."""
    rail = context.rails.issuing
    if rail is None:
        return 0
    due = await virtual_cards.claim_to_tell(context.pool, context.now(), BATCH)
    for card in due:
        await _tell(context, rail, card)
    return len(due)


async def _tell(context: Context, rail: IssuingRail, card: ToTell) -> None:
    found = await orders.read_with_plan(context.pool, card.merchant_id, card.order_id)
    assert found is not None
    try:
        await rail.limit(card.key, found.order.amount - found.order.voided)
        await virtual_cards.told(context.pool, card)
    except (RailUnavailable, Refused):
        wait = min(timedelta(seconds=10) * 2 ** min(card.tries, 10), LONGEST_WAIT)
        await virtual_cards.tell_later(context.pool, card, context.now() + wait)


async def hide_cards(context: Context) -> int:
    """Hide cards that were shown long enough, as a background job."""
    rail = context.rails.issuing
    due = await virtual_cards.to_hide(context.pool, context.real_now(), BATCH) if rail is not None else []
    hidden = 0
    for merchant_id, order_id, key in due:
        assert rail is not None
        try:
            await rail.hide(key)
        except RailUnavailable:
            log.warning("card not hidden yet", extra={"facts": {"orderId": str(order_id)}})
            continue
        await virtual_cards.hidden(context.pool, merchant_id, order_id)
        hidden += 1
    return hidden
