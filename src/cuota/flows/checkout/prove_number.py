"""A consumer proves a phone number with a one-time code. Codes and their limits are always on the real clock.

The checkout and the consumer's own page both do it this way. Each keeps its codes in its own session and has its own words.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cuota.core.checkout.texting import Limit
from cuota.core.consumer import is_us_number, typed_number
from cuota.flows.checkout.limit_texts import Browser, count_code
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context, utc_now
from cuota.rails.unavailable import RailUnavailable

CODE_LIFE = timedelta(minutes=10)
CODE_TRIES = 5
CODES_A_SESSION = 6

_NOT_A_NUMBER = "Enter a US mobile number of ten digits, area code first."

# Keeps phone, hash and end of a code in a session; False where the session has had CODES_A_SESSION codes already.
Keep = Callable[[str, bytes, datetime], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a number is proved for. `limit` names its count of codes, apart from other purposes."""

    limit: str
    too_many: str
    not_sent: str


async def text_code(
    context: Context,
    purpose: Purpose,
    typed: str,
    browser: Browser,
    keep: Keep,
    *,
    order: str | None = None,
    codes_sent: int = 0,
) -> None:
    """Text a new code to the number; raises Problem. `order` is the checkout that asks.

    `codes_sent`: a session that is known to have had its codes is refused before anything is counted.
    """
    phone = typed_number(typed)
    if not is_us_number(phone):
        raise Problem({"phone": _NOT_A_NUMBER})
    if codes_sent >= CODES_A_SESSION:
        context.texted(Limit.BROWSER)
        raise Problem({"phone": purpose.too_many})
    now = utc_now()
    if await count_code(context, purpose.limit, phone, browser, now, order) is not None:
        raise Problem({"phone": purpose.too_many})
    code = context.rails.message.new_code()
    code_hash = context.vault.code_hashes(f"{phone}:{code}")[0]
    if not await keep(phone, code_hash, now + CODE_LIFE):
        # Several codes were asked for at once: the statement that keeps a code also counts it.
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
    """The number that is proved now, and the hash of its code; raises Problem where the typed code does not prove it.

    `tried` is what the session keeps of its code, with this try counted already: (tries, hash, end).
    """
    if phone is None or tried is None:
        raise ask_first()
    tries, code_hash, ends_at = tried
    if tries > CODE_TRIES:
        raise Problem({"code": "Too many wrong codes. Send a new one."})
    if utc_now() >= ends_at:
        raise Problem({"code": "This code is too old. Send a new one."})
    if not _is_code(context, phone, "".join(typed.split()), code_hash):
        raise Problem({"code": "That code is not right. Check the message, or send a new one."})
    return phone, code_hash


def ask_first() -> Problem:
    """No code waits to be typed, or this one was used up by another request."""
    return Problem(notice="Ask for a new code first.")


def _is_code(context: Context, phone: str, typed: str, code_hash: bytes) -> bool:
    """Whether this is the code that went to this number, in constant time. An old secret key's codes are good too."""
    fits = [hmac.compare_digest(each, code_hash) for each in context.vault.code_hashes(f"{phone}:{typed}")]
    return any(fits)
