"""The consumer proves a phone number with a one-time code, and enters a name and address."""

from __future__ import annotations

import secrets
from datetime import datetime

from cuota.core.checkout.ending import require_open
from cuota.core.consumer import Profile, ShippingAddress
from cuota.core.privacy.erasure import Forgotten
from cuota.db.checkout import checkouts, consumers
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.limit_texts import NOWHERE, Browser
from cuota.flows.checkout.prove_number import CODES_A_SESSION, Purpose, ask_first, right_code, text_code
from cuota.flows.checkout.take_step import Problem, session_key
from cuota.flows.context import Context, utc_now

_PURPOSE = Purpose(
    "phone",
    too_many="Too many codes were requested. Wait an hour, or go back to the shop and choose another way to pay.",
    not_sent="We could not send a text to this number right now. Try again in a moment.",
)


async def send_code(context: Context, checkout: Checkout, typed: str, browser: Browser = NOWHERE) -> None:
    """Send a code to the number by text message. Raises Problem."""
    require_open(checkout.order, context.now())

    async def keep(phone: str, code_hash: bytes, ends_at: datetime) -> bool:
        return await checkouts.code_sent(
            context.pool, checkout.key, phone, code_hash, ends_at, CODES_A_SESSION
        )

    order, sent = str(checkout.order.order_id), checkout.session.codes_sent
    await text_code(context, _PURPOSE, typed, browser, keep, order=order, codes_sent=sent)


async def check_code(context: Context, checkout: Checkout, typed: str) -> str:
    """Check a code in constant time; raise Problem.

    A code has at most five tries, and a try is counted before it is checked.

    Returns the session's new secret. If somebody planted the old secret in this browser, that secret is now worthless.
    """
    require_open(checkout.order, context.now())
    tried = await checkouts.try_code(context.pool, checkout.key)
    phone, code_hash = right_code(context, checkout.session.phone, tried, typed)
    consumer_id = context.vault.consumer_id(phone)
    secret = secrets.token_urlsafe(32)
    merchant_id, order_id, _ = checkout.key
    new_hash = session_key(context, merchant_id, order_id, secret)[2]
    if not await checkouts.verified(context.pool, checkout.key, utc_now(), consumer_id, code_hash, new_hash):
        raise ask_first()
    return secret


async def give_details(context: Context, checkout: Checkout, profile: Profile) -> None:
    """Store the consumer's details, for this checkout and the next one.

    Raises Forgotten if the consumer was erased meanwhile.
    """
    require_open(checkout.order, context.now())
    session = checkout.session
    if session.consumer_id is None or session.phone is None:
        raise Problem(notice="Confirm your phone number first.")
    # An erasure deletes the session, then the consumer. Until this transaction ends it waits for the session's row.
    async with context.pool.session() as connection, connection.transaction():
        if not await checkouts.save_profile(connection, checkout.key, profile):
            raise Forgotten
        await consumers.save(connection, session.consumer_id, session.phone, profile, context.now())


async def give_shipping(context: Context, checkout: Checkout, shipping: ShippingAddress) -> None:
    """Store the shipping address of an express order."""
    require_open(checkout.order, context.now())
    if checkout.session.consumer_id is None:
        raise Problem(notice="Confirm your phone number first.")
    await checkouts.save_shipping(context.pool, checkout.key, shipping)
