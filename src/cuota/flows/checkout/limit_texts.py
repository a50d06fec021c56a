"""Rate limits on one-time codes. A code is counted before it is sent; a refused code does not count.

Nobody can lock out the owner of a number: one address or one browser may request fewer codes than one number may get;
the checkout and the account page count separately; and a browser that has verified the number before has a separate
limit and is exempt from the limit of the number's prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.checkout.texting import Limit
from cuota.db.checkout import codes
from cuota.flows.checkout.remember_browser import who_is_remembered
from cuota.flows.context import Context

NUMBER_AN_HOUR = 24
NUMBER_FROM_ADDRESS_AN_HOUR = 8
OWN_BROWSER_AN_HOUR = 6
ORDER_AN_HOUR = 24
_CODES = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Browser:
    """The client that requests a code: its address, if known, and the token that its browser holds."""

    network: str | None = None
    token: str | None = None


NOWHERE = Browser()


async def count_code(
    context: Context, purpose: str, phone: str, browser: Browser, now: datetime, order: str | None = None
) -> Limit | None:
    """Count a code for a number. Return the limit that was reached if the code must not be sent.

    Each `purpose` is counted separately; `order` is the checkout that requests the code.
    """
    counted = await _counted(context, purpose, phone, browser, order)
    if not counted:
        return None
    # All requests change the same row. They wait for this lock before they take a database session.
    async with context.lock(_CODES):
        full = await codes.count(context.pool, [(value, most) for _, value, most in counted], now)
    refused = next(
        (limit for limit in Limit for kind, value, _ in counted if kind is limit and value in full), None
    )
    if refused is not None:
        context.texted(refused)
    return refused


async def _counted(
    context: Context, purpose: str, phone: str, browser: Browser, order: str | None
) -> list[tuple[Limit, bytes, int]]:
    """Return the limits that a code for this number counts against, each with its most codes in an hour."""
    limits, hash_of = context.settings.text_limits, context.vault.hash
    remembered = await who_is_remembered(context, browser.token)
    known = remembered is not None and remembered.consumer_id == context.vault.consumer_id(phone)
    chosen = [(Limit.INSTALLATION, hash_of("codes-of", "installation"), limits.installation)]
    if not known:
        chosen.append((Limit.PREFIX, hash_of("codes-of-prefix", phone[:6]), limits.prefix))
    if browser.network is not None:
        chosen.append((Limit.ADDRESS, hash_of("codes-of-address", browser.network), limits.address))
    counted = [(limit, value, most) for limit, value, most in chosen if most is not None]
    if order is not None:
        counted.append((Limit.ORDER, hash_of("codes-of-order", order), ORDER_AN_HOUR))
    # The sandbox sends no texts, and everybody tries the same few numbers.
    return (
        counted
        if context.settings.sandbox
        else [*counted, *_of_number(context, purpose, phone, browser, known=known)]
    )


def _of_number(
    context: Context, purpose: str, phone: str, browser: Browser, *, known: bool
) -> list[tuple[Limit, bytes, int]]:
    hash_of = context.vault.hash
    if known:
        own = hash_of(f"{purpose}-own", f"{phone}:{browser.token}")
        return [(Limit.BROWSER, own, OWN_BROWSER_AN_HOUR)]
    counted = [(Limit.NUMBER, hash_of(purpose, phone), NUMBER_AN_HOUR)]
    if browser.network is not None:
        here = hash_of(f"{purpose}-from", f"{phone}:{browser.network}")
        counted.append((Limit.NUMBER_FROM_ADDRESS, here, NUMBER_FROM_ADDRESS_AN_HOUR))
    return counted
