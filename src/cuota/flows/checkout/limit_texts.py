"""One-time codes are counted before one is sent. A refused one counts for nobody.

A number's owner is not locked out by others: what one address or one browser may ask for is less than what a number
may get, the checkout and the account page count apart, and a browser that proved the number before has a count of
its own and is not held to that of the prefix.
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
    """Where a code is asked for: from which address, where one is known, and by a browser that holds which token."""

    network: str | None = None
    token: str | None = None


NOWHERE = Browser()


async def count_code(
    context: Context, purpose: str, phone: str, browser: Browser, now: datetime, order: str | None = None
) -> Limit | None:
    """Count a code for a number; answers the limit that is reached, where it may not be sent.

    `purpose` counts apart from others; `order` is the checkout that asks.
    """
    counted = await _counted(context, purpose, phone, browser, order)
    if not counted:
        return None
    # All of them change the installation's row: they wait here, not each with a session in hand.
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
    """What a code for this number counts for, and how many of each an hour may have."""
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
    # In the sandbox no text is sent, and everybody tries the same few numbers.
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
