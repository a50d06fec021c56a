"""The consumer proves a phone number with a one-time code, and says who they are."""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta

from cuota.core.checkout.ending import require_open
from cuota.core.checkout.texting import Limit
from cuota.core.consumer import Profile, ShippingAddress, is_us_number, typed_number
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
    """Text a code to the number; raises Problem. Codes and their limits stay on the real clock."""
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
        # Many asked at once: the count and its limit are one statement.
        context.texted(Limit.BROWSER)
        raise Problem({"phone": _TOO_MANY})
    try:
        await context.rails.message.send_code(phone, code, context.settings.brand_name)
    except RailUnavailable:
        context.texted("failed")
        raise Problem({"phone": _NOT_SENT}) from None
    context.texted("sent")


async def check_code(context: Context, checkout: Checkout, typed: str) -> str:
    """Compare in constant time, at most five tries a code, counted before they are judged; raises Problem.

    Answers the session's new secret: one that somebody planted in this browser before is worthless from here on.
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
    """Whether this is the code that went to this number, in constant time. An old secret key's codes are good too."""
    fits = [hmac.compare_digest(each, code_hash) for each in context.vault.code_hashes(f"{phone}:{typed}")]
    return any(fits)


async def give_details(context: Context, checkout: Checkout, profile: Profile) -> None:
    """Keep what the consumer said about themselves, for this checkout and the next visit."""
    require_open(checkout.order, context.now())
    session = checkout.session
    if session.consumer_id is None or session.phone is None:
        raise Problem(notice="Confirm your phone number first.")
    await checkouts.save_profile(context.pool, checkout.key, profile)
    await consumers.save(context.pool, session.consumer_id, session.phone, profile, context.now())


async def give_shipping(context: Context, checkout: Checkout, shipping: ShippingAddress) -> None:
    """Keep where an express order is to be sent."""
    require_open(checkout.order, context.now())
    if checkout.session.consumer_id is None:
        raise Problem(notice="Confirm your phone number first.")
    await checkouts.save_shipping(context.pool, checkout.key, shipping)
