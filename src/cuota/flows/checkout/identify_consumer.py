"""The consumer proves a phone number with a one-time code, and enters a name and address."""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta

from cuota.core.checkout.consumer import Profile, ShippingAddress, is_us_number, typed_number
from cuota.core.checkout.ending import require_open
from cuota.core.checkout.texting import Limit
from cuota.db.checkout import checkouts, consumers
from cuota.flows.checkout.limit_texts import NOWHERE, Browser, count_code
from cuota.flows.checkout.take_step import Checkout, Problem, session_key
from cuota.flows.context import Context, utc_now
from cuota.rails.unavailable import RailUnavailable

CODE_LIFE = timedelta(minutes=10)
CODE_TRIES = 5
CODES_A_SESSION = 6

_NOT_A_NUMBER = "Enter a US mobile number of ten digits, area code first."
_NOT_SENT = "We could not send a text to this number right now. Try again in a moment."
_TOO_MANY = (
    "Too many codes were asked for. Wait an hour, or go back to the shop and choose another way to pay."
)


async def send_code(context: Context, checkout: Checkout, typed: str, browser: Browser = NOWHERE) -> None:
    """Send a code to the number by text message; raise Problem. Codes and their limits use the real clock."""
    require_open(checkout.order, context.now())
    phone = typed_number(typed)
    if not is_us_number(phone):
        raise Problem({"phone": _NOT_A_NUMBER})
    if checkout.session.codes_sent >= CODES_A_SESSION:
        context.texted(Limit.BROWSER)
        raise Problem({"phone": _TOO_MANY})
    now = utc_now()
    order = str(checkout.order.order_id)
    if await count_code(context, "phone", phone, browser, now, order) is not None:
        raise Problem({"phone": _TOO_MANY})
    code = context.rails.message.new_code()
    code_hash = context.vault.code_hashes(f"{phone}:{code}")[0]
    ends_at = now + CODE_LIFE
    if not await checkouts.code_sent(context.pool, checkout.key, phone, code_hash, ends_at, CODES_A_SESSION):
        # Many requests may arrive at once, so one statement both counts the code and checks the limit.
        context.texted(Limit.BROWSER)
        raise Problem({"phone": _TOO_MANY})
    try:
        await context.rails.message.send_code(phone, code, context.settings.brand_name)
    except RailUnavailable:
        context.texted("failed")
        raise Problem({"phone": _NOT_SENT}) from None
    context.texted("sent")


async def check_code(context: Context, checkout: Checkout, typed: str) -> str:
    """Check a code in constant time; raise Problem.

    A code has at most five tries, and a try is counted before it is checked.

    Returns the session's new secret. If somebody planted the old secret in this browser, that secret is now worthless.
    """
    require_open(checkout.order, context.now())
    code = "".join(typed.split())
    phone = checkout.session.phone
    tried = await checkouts.try_code(context.pool, checkout.key)
    if phone is None or tried is None:
        raise Problem(notice="Ask for a new code first.")
    tries, code_hash, ends_at = tried
    now = utc_now()
    if tries > CODE_TRIES:
        raise Problem({"code": "Too many wrong codes. Send a new one."})
    if now >= ends_at:
        raise Problem({"code": "This code is too old. Send a new one."})
    if not is_code(context, phone, code, code_hash):
        raise Problem({"code": "That code is not right. Check the message, or send a new one."})
    consumer_id = context.vault.consumer_id(phone)
    secret = secrets.token_urlsafe(32)
    merchant_id, order_id, _ = checkout.key
    new_hash = session_key(context, merchant_id, order_id, secret)[2]
    if not await checkouts.verified(context.pool, checkout.key, now, consumer_id, code_hash, new_hash):
        raise Problem(notice="Ask for a new code first.")
    return secret


def is_code(context: Context, phone: str, typed: str, code_hash: bytes) -> bool:
    """Tell, in constant time, whether this code was sent to this number.

    Codes hashed with an old secret key are valid too.
    """
    fits = [hmac.compare_digest(each, code_hash) for each in context.vault.code_hashes(f"{phone}:{typed}")]
    return any(fits)


async def give_details(context: Context, checkout: Checkout, profile: Profile) -> None:
    """Store the consumer's name and address for this checkout and for the next visit."""
    require_open(checkout.order, context.now())
    session = checkout.session
    if session.consumer_id is None or session.phone is None:
        raise Problem(notice="Confirm your phone number first.")
    await checkouts.save_profile(context.pool, checkout.key, profile)
    await consumers.save(context.pool, session.consumer_id, session.phone, profile, context.now())


async def give_shipping(context: Context, checkout: Checkout, shipping: ShippingAddress) -> None:
    """Store the shipping address of an express order."""
    require_open(checkout.order, context.now())
    if checkout.session.consumer_id is None:
        raise Problem(notice="Confirm your phone number first.")
    await checkouts.save_shipping(context.pool, checkout.key, shipping)
