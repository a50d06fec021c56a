"""E-mails sign-in links."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from cuota.core.message import Message
from cuota.db.desk import people, sessions
from cuota.db.desk.sessions import Link
from cuota.db.hosts import NodeLost
from cuota.db.merchant import merchants
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.sign_in import LINK_LIFE, link_address
from cuota.rails.unavailable import RailUnavailable

TRIES = 10
AGAIN = timedelta(seconds=30)
log = logging.getLogger("cuota.work")


async def send_links(context: Context) -> int:
    """Send the e-mails that are due. Return how many were tried."""
    done = 0
    for merchant_id in await sessions.merchants_with_mail(context.pool, utc_now()):
        try:
            done += await _send(context, merchant_id)
        except NodeLost:
            log.warning("sign-in mails wait", extra={"facts": {"merchantId": str(merchant_id)}})
    return done


async def _send(context: Context, merchant_id: UUID) -> int:
    now = utc_now()
    claimed = await sessions.claim_mail(context.pool, merchant_id, now, now + AGAIN)
    merchant = await merchants.read(context.pool, merchant_id)
    for link in claimed:
        person = await people.read(context.pool, merchant_id, link.person_id)
        if person is None or merchant is None or link.ends_at <= now or link.tries > TRIES:
            await sessions.mailed(context.pool, merchant_id, link.link_id)
            continue
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
    return len(claimed)


def link_text(address: str, whose: str, link: Link, *, new: bool) -> str:
    """Return the text of the e-mail with a link to the dashboard of `whose`. `new`: the person has never signed in."""
    first = (
        f"You were invited to the dashboard of {whose}. Open this link to join:"
        if new
        else f"Open this link to sign in to the dashboard of {whose}:"
    )
    life = "7 days" if link.ends_at - utc_now() > LINK_LIFE else "15 minutes"
    return (
        f"{first}\n\n{address}\n\nThe link works once, for {life}. If you did not ask for this link, ignore this mail: without the"
        " link and your authenticator app, nobody signs in."
    )
