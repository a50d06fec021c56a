"""The consumer verifies a phone number with a one-time code, and enters a name and address."""

from __future__ import annotations

import secrets
from datetime import datetime

from cuota.core.area_codes import is_us_mobile
from cuota.core.checkout.ending import require_open
from cuota.core.consumer import Profile, ShippingAddress, is_us_number, typed_number
from cuota.core.privacy.erasure import Forgotten
from cuota.db.checkout import checkouts
from cuota.db.checkout.checkouts import RightCode
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.limit_texts import NOWHERE, Browser
from cuota.flows.checkout.prove_number import (
    CODE_TRIES,
    CODES_A_SESSION,
    Purpose,
    ask_first,
    fitting_hash,
    refused_try,
    text_code,
)
from cuota.flows.checkout.take_step import Problem, session_key
from cuota.flows.context import Context

_PURPOSE = Purpose(
    "phone",
    too_many="Too many codes were requested. Wait an hour, or go back to the shop and choose another way to pay.",
    not_sent="We could not send a text to this number right now. Try again in a moment.",
)


_OTHER_AREA = "Enter a US mobile number. No US mobile number has the area code {}."


async def send_code(context: Context, checkout: Checkout, typed: str, browser: Browser = NOWHERE) -> None:
    """Send a code to the number by text message. Raises Problem.

    The account page does not check the area code: a consumer who agreed to a plan with such a number must still reach the plan.
    """
    require_open(checkout.order, context.now())
    phone = typed_number(typed)
    if is_us_number(phone) and not is_us_mobile(phone):
        raise Problem({"phone": _OTHER_AREA.format(phone[:3])})

    async def keep(phone: str, code_hash: bytes, ends_at: datetime) -> bool:
        return await checkouts.code_sent(
            context.pool, checkout.key, phone, code_hash, ends_at, CODES_A_SESSION
        )

    order, sent = str(checkout.order.order_id), checkout.session.codes_sent
    await text_code(context, _PURPOSE, typed, browser, keep, order=order, codes_sent=sent)


async def check_code(context: Context, checkout: Checkout, typed: str) -> str:
    """Check a code in constant time; raise Problem.

    A code allows at most five attempts. One statement counts the attempt and marks the code as used, so that concurrent
    attempts cannot exceed the limit, and a code works once.

    Returns the session's new secret. If an attacker planted the old secret in this browser, that secret is no longer
    accepted.
    """
    require_open(checkout.order, context.now())
    phone = checkout.session.phone
    secret = secrets.token_urlsafe(32)
    right: RightCode | None = None
    code_hash = fitting_hash(context, phone, checkout.session.code_hash, typed)
    if phone is not None and code_hash is not None:
        merchant_id, order_id, _ = checkout.key
        new_hash = session_key(context, merchant_id, order_id, secret)[2]
        right = code_hash, context.vault.consumer_id(phone), new_hash
    tried = await checkouts.try_code(context.pool, checkout.key, context.real_now(), right, CODE_TRIES)
    if phone is None or tried is None:
        raise ask_first()
    tries, ends_at, good = tried
    if not good:
        raise refused_try(context, tries, ends_at)
    return secret


async def give_details(context: Context, checkout: Checkout, profile: Profile) -> None:
    """Store the consumer's details, for this checkout and the next one.

    Raises Forgotten if the consumer was erased.
    """
    require_open(checkout.order, context.now())
    session = checkout.session
    if session.consumer_id is None or session.phone is None:
        raise Problem(notice="Confirm your phone number first.")
    consumer = session.consumer_id, session.phone
    if not await checkouts.save_details(context.pool, checkout.key, *consumer, profile, context.now()):
        raise Forgotten


async def give_shipping(context: Context, checkout: Checkout, shipping: ShippingAddress) -> None:
    """Store the shipping address of an express order."""
    require_open(checkout.order, context.now())
    if checkout.session.consumer_id is None:
        raise Problem(notice="Confirm your phone number first.")
    await checkouts.save_shipping(context.pool, checkout.key, shipping)
