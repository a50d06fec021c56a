"""E-mails a merchant's own people notices about changes."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from cuota.core.desk.notice import notice_text
from cuota.core.message import Message
from cuota.db.desk import notices
from cuota.db.hosts import NodeLost
from cuota.db.merchant import merchants
from cuota.flows.context import Context, utc_now
from cuota.rails.unavailable import RailUnavailable

# About three days. A thief's change of the bank account takes effect after three days, and until then its notice is worth
# sending.
TRIES = 290
AGAIN = timedelta(minutes=15)
log = logging.getLogger("cuota.work")


async def send_notices(context: Context) -> int:
    """Send the e-mails that are due. Return how many were tried."""
    done = 0
    for merchant_id in await notices.merchants_with_notices(context.pool, utc_now()):
        try:
            done += await _send(context, merchant_id)
        except NodeLost:
            log.warning("notices wait", extra={"facts": {"merchantId": str(merchant_id)}})
    return done


async def _send(context: Context, merchant_id: UUID) -> int:
    now = utc_now()
    claimed = await notices.claim(context.pool, merchant_id, now, now + AGAIN)
    merchant = await merchants.read(context.pool, merchant_id)
    for notice in claimed:
        if merchant is None or notice.tries > TRIES:
            log.error("notice given up", extra={"facts": {"noticeId": str(notice.notice_id)}})
            await notices.sent(context.pool, merchant_id, notice.notice_id)
            continue
        dashboard = f"{context.settings.public_url.rstrip('/')}/desk"
        mail = notice_text(notice.kind, notice.facts, merchant.name, dashboard)
        sender = context.settings.brand_name
        message = Message(notice.notice_id, None, notice.email, sender, mail.subject, mail.text)
        try:
            await context.rails.message.send(message)
        except RailUnavailable:
            log.warning("notice waits", extra={"facts": {"merchantId": str(merchant_id)}})
        else:
            await notices.sent(context.pool, merchant_id, notice.notice_id)
    return len(claimed)
