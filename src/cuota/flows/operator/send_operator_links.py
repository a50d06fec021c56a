"""E-mails sign-in links to the operator's people."""

from __future__ import annotations

import logging

from cuota.core.message import Message
from cuota.db.desk.sessions import Link
from cuota.db.operator import operator_sessions, operators
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.send_links import AGAIN, BATCH, at_the_same_time, link_text
from cuota.flows.operator.operator_sign_in import operator_link_address
from cuota.rails.unavailable import RailUnavailable

log = logging.getLogger("cuota.work")


async def send_operator_links(context: Context) -> int:
    """Send the e-mails that are due. Return how many were tried."""
    claimed = await operator_sessions.claim_mail(context.pool, utc_now(), AGAIN, BATCH)
    await at_the_same_time(_send(context, link) for link in claimed)
    return len(claimed)


async def _send(context: Context, link: Link) -> None:
    brand = context.settings.brand_name
    person = await operators.read(context.pool, link.person_id)
    if person is None or link.ends_at <= utc_now():
        await operator_sessions.mailed(context.pool, link.link_id)
        return
    address, name = operator_link_address(context, link.link_id), f"{brand}, for its operator"
    text = _invitation(context, name) or link_text(address, name, link, new=person.joined_at is None)
    subject = f"Sign in to the operator's dashboard of {brand}"
    try:
        await context.rails.message.send(Message(link.link_id, None, person.email, brand, subject, text))
    except RailUnavailable:
        log.warning("sign-in mail waits", extra={"facts": {"team": "operator"}})
    else:
        await operator_sessions.mailed(context.pool, link.link_id)


def _invitation(context: Context, name: str) -> str | None:
    """Return the text for a person who must sign in at the provider, or None. For this person a link would not work."""
    rules = context.settings.provider_rules
    if rules is None or not rules.only:
        return None
    address = f"{context.settings.public_url.rstrip('/')}/operator/sign-in"
    return (
        f"You were invited to the dashboard of {name}. Sign in with your account at {rules.name}, whose e-mail address must be this one:"
        f"\n\n{address}"
    )
