"""A consumer proves a phone number with a one-time code. Codes and their rate limits always use the real clock.

The checkout and the account page share this code. Each stores its codes in its own session and has its own texts.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cuota.core.checkout.texting import Limit
from cuota.core.consumer import is_us_number, typed_number
from cuota.core.typed_text import typed_digits
from cuota.flows.checkout.limit_texts import Browser, count_code
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context
from cuota.rails.unavailable import RailUnavailable

CODE_LIFE = timedelta(minutes=10)
CODE_TRIES = 5
CODES_A_SESSION = 6

_NOT_A_NUMBER = "Enter a US mobile number of ten digits, area code first."

# Stores the phone, hash and expiration of a code in a session. Returns False if the session has had CODES_A_SESSION codes.
StoreCode = Callable[[str, bytes, datetime], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of verifying a number. `limit` is the name under which the codes of this purpose are counted."""

    limit: str
    too_many: str
    not_sent: str


async def text_code(
    context: Context,
    purpose: Purpose,
    typed: str,
    browser: Browser,
    keep: StoreCode,
    *,
    order: str | None = None,
    codes_sent: int = 0,
) -> None:
    """Send a new code to the number by text message. Raises Problem. `order` is the checkout that requests the code.

    `codes_sent` is the number of codes that the session has had. At the limit, the request is refused and not counted.
    """
    phone = typed_number(typed)
    if not is_us_number(phone):
        raise Problem({"phone": _NOT_A_NUMBER})
    if codes_sent >= CODES_A_SESSION:
        context.texted(Limit.BROWSER)
        raise Problem({"phone": purpose.too_many})
    now = context.real_now()
    if await count_code(context, purpose.limit, phone, browser, now, order) is not None:
        raise Problem({"phone": purpose.too_many})
    code = context.rails.message.new_code()
    code_hash = context.vault.code_hashes(f"{phone}:{code}")[0]
    if not await keep(phone, code_hash, now + CODE_LIFE):
        # Several codes were requested at the same moment. The statement that stores a code also counts it.
        context.texted(Limit.BROWSER)
        raise Problem({"phone": purpose.too_many})
    try:
        await context.rails.message.send_code(phone, code, context.settings.brand_name)
    except RailUnavailable:
        context.texted("failed")
        raise Problem({"phone": purpose.not_sent}) from None
    context.texted("sent")


def right_code(
    context: Context, phone: str | None, tried: tuple[int, bytes, datetime] | None, typed: str
) -> tuple[str, bytes]:
    """Return the number that the typed code verifies, and the hash of the code. Raises Problem if the code is not right.

    `tried` is the session's code as (attempts, hash, expiration); this attempt is already counted.
    """
    if phone is None or tried is None:
        raise ask_first()
    tries, code_hash, ends_at = tried
    in_time = tries <= CODE_TRIES and context.real_now() < ends_at
    if not in_time or fitting_hash(context, phone, code_hash, typed) is None:
        raise refused_try(context, tries, ends_at)
    return phone, code_hash


def fitting_hash(context: Context, phone: str | None, code_hash: bytes | None, typed: str) -> bytes | None:
    """Return the hash of the session's code if the typed code is that code, else None. The comparison takes constant time."""
    if phone is None or code_hash is None:
        return None
    return code_hash if _is_code(context, phone, "".join(typed_digits(typed).split()), code_hash) else None


def refused_try(context: Context, tries: int, ends_at: datetime) -> Problem:
    """Return why an attempt, which is already counted, did not verify the number."""
    if tries > CODE_TRIES:
        return Problem({"code": "Too many wrong codes. Request a new one."})
    if context.real_now() >= ends_at:
        return Problem({"code": "This code has expired. Request a new one."})
    return Problem({"code": "This code is wrong. Check the message, or request a new code."})


def ask_first() -> Problem:
    """Return the problem for a session without a code, or whose code another request has used."""
    return Problem(notice="Request a new code first.")


def _is_code(context: Context, phone: str, typed: str, code_hash: bytes) -> bool:
    """True if this is the code sent to this number, compared in constant time. Codes hashed with an old key are valid too."""
    fits = [hmac.compare_digest(each, code_hash) for each in context.vault.code_hashes(f"{phone}:{typed}")]
    return any(fits)
