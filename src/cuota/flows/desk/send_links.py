"""E-mails sign-in links."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from datetime import timedelta
from uuid import UUID

from cuota.core.message import Message
from cuota.db.desk import people, sessions
from cuota.db.desk.sessions import Link
from cuota.db.merchant import merchants
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.sign_in import link_address
from cuota.rails.bounded import MESSAGE_SECONDS
from cuota.rails.unavailable import RailUnavailable

# All mails of a batch are sent at the same time.
BATCH = 8
AGAIN = timedelta(seconds=30)
# Even the slowest mail server finishes a batch before the lease of its claims ends, so no mail is sent twice.
assert AGAIN.total_seconds() > MESSAGE_SECONDS
log = logging.getLogger("cuota.work")


async def send_links(context: Context) -> int:
    """Send the e-mails that are due. Return how many were tried."""
    claimed = await sessions.claim_mail(context.pool, utc_now(), AGAIN, BATCH)
    await at_the_same_time(_send(context, merchant_id, link) for merchant_id, link in claimed)
    return len(claimed)


async def at_the_same_time(sending: Iterable[Awaitable[None]]) -> None:
    """Wait until each mail is sent or has failed. Only then raise the first error, if there is one."""
    for result in await asyncio.gather(*sending, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def _send(context: Context, merchant_id: UUID, link: Link) -> None:
    merchant = await merchants.read(context.pool, merchant_id)
    person = await people.read(context.pool, merchant_id, link.person_id)
    if person is None or merchant is None or link.ends_at <= utc_now():
        await sessions.mailed(context.pool, merchant_id, link.link_id)
        return
    address = link_address(context, merchant_id, link.link_id)
    text = link_text(address, merchant.name, link, new=person.joined_at is None)
    subject = f"Sign in to the dashboard of {merchant.name}"
    sender = context.settings.brand_name
    try:
        await context.rails.message.send(Message(link.link_id, None, person.email, sender, subject, text))
    except RailUnavailable:
        log.warning("sign-in mail waits", extra={"facts": {"merchantId": str(merchant_id)}})
    else:
        await sessions.mailed(context.pool, merchant_id, link.link_id)


def link_text(address: str, whose: str, link: Link, *, new: bool) -> str:
    """Return the text of the e-mail with a link to the dashboard of `whose`. `new`: the person has never signed in."""
    first = (
        f"You were invited to the dashboard of {whose}. Open this link to join:"
        if new
        else f"Open this link to sign in to the dashboard of {whose}:"
    )
    life = life_words(link.ends_at - utc_now())
    return (
        f"{first}\n\n{address}\n\nThe link works once, for {life}. If you did not ask for this link, ignore this mail: without the"
        " link and your authenticator app, nobody signs in."
    )


def life_words(left: timedelta) -> str:
    """Return how long a link still works: `7 days`, `30 hours`, `15 minutes`. The mail may be late."""
    if left >= timedelta(days=2):
        return f"{(left + timedelta(hours=1)) // timedelta(days=1)} days"
    size, word = (
        (timedelta(hours=1), "hour") if left >= timedelta(hours=1) else (timedelta(minutes=1), "minute")
    )
    # A mail is sent some seconds after its link was made.
    count = left // size if word == "hour" else -(-left // size)
    return f"{count} {word}{'' if count == 1 else 's'}"
