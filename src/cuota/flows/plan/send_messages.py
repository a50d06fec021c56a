"""Sends messages to consumers: claim due messages, write their texts, pass them to the message rail with their own keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from cuota.core.dates import time_of_day
from cuota.core.message import Message
from cuota.core.plan.agreement import accepted_text
from cuota.core.plan.notice import ABOUT_NEXT_CHARGE, AWAITED, IN_DAYTIME, NoticeKind
from cuota.core.plan.notice_words import About, Words, letter_words, words
from cuota.core.plan.payday import Days
from cuota.core.refusal import Refused
from cuota.db.plan import messages
from cuota.db.plan.messages import Channel, DueMessage, SentText
from cuota.db.pool import GONE
from cuota.flows.checkout.answer_text import is_stopped
from cuota.flows.context import Context
from cuota.flows.order.create_order import checkout_url
from cuota.flows.plan.read_messages import seal_text
from cuota.flows.risk.write_letter import write_letter
from cuota.rails.bounded import MESSAGE_SECONDS
from cuota.rails.unavailable import RailUnavailable

# Each channel has its own batches and places, so that a mail server that hangs delays no text.
BATCH = 24
AT_ONCE = 8
# Even the slowest rail finishes a batch before the lease of its claims ends.
assert messages.LEASE.total_seconds() > BATCH / AT_ONCE * MESSAGE_SECONDS
LONGEST_WAIT = timedelta(hours=1)
# For a day and a half, a failed message is retried at least every hour. A provider may be down for longer, and a receipt, a decision
# or the letter about a declined order must still arrive. So retries continue every six hours until the message is this old.
OFTEN_TRIES, RARE_WAIT = 40, timedelta(hours=6)
GIVE_UP_AFTER = timedelta(days=30)
log = logging.getLogger("cuota.work")


async def send_messages(context: Context, *channels: Channel) -> int:
    """Send the messages that are due, of these channels or of all. Return how many were claimed."""
    return sum([await _send_batch(context, channel) for channel in channels or tuple(Channel)])


async def _send_batch(context: Context, channel: Channel) -> int:
    claimed = await messages.claim(context.pool, context.now(), BATCH, channel)
    places = asyncio.Semaphore(AT_ONCE)

    async def send(due: DueMessage) -> None:
        if morning := _waits_until(context, due):
            # A message that waits uses no rail. All of them together are postponed with one statement.
            await messages.wait_for_day(context.pool, due, morning)
            return
        async with places:
            await _send_one(context, due)

    await asyncio.gather(*(_without_stopping_others(due, send) for due in claimed))
    return len(claimed)


async def _without_stopping_others(due: DueMessage, send: Callable[[DueMessage], Awaitable[None]]) -> None:
    try:
        await send(due)
    except (Refused, *GONE) as problem:
        # The database is away or busy. The lease of the message ends, and it is sent again with the same key.
        facts = {"orderId": str(due.order_id), "problem": type(problem).__name__}
        log.warning("message waits", extra={"facts": facts})
    except Exception:
        # A message that cannot be sent does not stop the others. Its lease ends, and it is retried.
        log.exception("message failed", extra={"facts": {"orderId": str(due.order_id)}})


def _words(context: Context, due: DueMessage) -> Words:
    settings, notice = context.settings, due.notice
    if due.declined is None:
        page = f"{settings.public_url}/account"
        zone = ZoneInfo(due.zone) if due.zone else None
        changed_on = due.changed_at.astimezone(zone).date() if due.changed_at else None
        accepted = due.agreement and accepted_text(due.agreement)
        about = About(
            due.merchant, due.reference, due.currency, page, due.card, due.cards, accepted, due.overtaken,
            due.payments, changed_on, charged=due.charged, paused=due.paused,
        )  # fmt: skip
        if due.review is not None:
            ends = due.review.expires_at.astimezone(ZoneInfo(due.review.zone))
            checkout = checkout_url(context, due.merchant_id, due.review.token)
            about = replace(about, checkout=checkout, until=time_of_day(ends))
        return words(notice, about)
    paragraphs = write_letter(
        settings,
        name=due.declined.name,
        merchant=due.merchant,
        day=notice.day,
        amount=notice.amount,
        currency=due.currency,
        reasons=due.declined.reasons,
        limit=due.declined.limit,
    )
    return letter_words(paragraphs, due.merchant)


def _too_late(context: Context, due: DueMessage) -> bool:
    """Whether the message asks the consumer to complete a checkout that has ended since, or that is being completed now."""
    review = due.review
    if due.notice.kind is not NoticeKind.REVIEW_APPROVED or review is None:
        return False
    return not review.is_open or context.now() >= review.expires_at


def _waits_until(context: Context, due: DueMessage) -> datetime | None:
    """Return the next morning, if it is night for the consumer and the message is sent only in the daytime."""
    nobody = due.phone is None and due.email is None
    if nobody or due.notice.kind not in IN_DAYTIME or due.zone is None:
        return None
    now = context.now()
    morning = Days(ZoneInfo(due.zone)).daytime(now)
    return None if morning == now else morning


def _outdated(context: Context, due: DueMessage) -> str | None:
    """Return why the message is no longer true, or None if it is true.

    The first reason is about a message that announces a charge, or asks for a card, for a payment that was paid, canceled or moved
    since. A message that announces a charge is also outdated when the charge is due: after an outage, it would name a day that
    has passed.
    """
    kind = due.notice.kind
    if due.decided_since:
        return "a later message has the state of the dispute"
    if due.zone is None:
        return None
    zone = ZoneInfo(due.zone)
    if kind is NoticeKind.RETURN_NOTED and due.notice.day <= context.now().astimezone(zone).date():
        return "the wait for the refund has ended"
    if kind not in ABOUT_NEXT_CHARGE:
        return None
    changed = due.nothing_to_pay
    if kind is NoticeKind.REMINDER or kind is NoticeKind.PAYMENT_FAILED:
        at = due.charge_at
        changed |= at is None or at <= context.now() or at.astimezone(zone).date() != due.notice.day
    return "the payment has changed" if changed else None


async def _retry_later(context: Context, due: DueMessage, reason: str) -> None:
    often = due.tries < OFTEN_TRIES
    # After an outage of Cuota itself, an old message still has all its frequent retries.
    if not often and due.notice.send_at + GIVE_UP_AFTER <= context.now():
        facts = {"orderId": str(due.order_id), "kind": due.notice.kind.value, "problem": reason}
        log.error("message given up", extra={"facts": facts})
        await messages.settle(context.pool, due, reason, context.now())
        return
    wait = min(timedelta(seconds=10) * 2 ** min(due.tries, 10), LONGEST_WAIT) if often else RARE_WAIT
    await messages.try_again(context.pool, due, context.now() + wait, reason)


async def _send_one(context: Context, due: DueMessage) -> None:
    if due.phone is None and due.email is None:
        await messages.settle(context.pool, due, "nobody to send it to", context.now())
        return
    if _too_late(context, due):
        await messages.settle(context.pool, due, "the checkout has ended", context.now())
        return
    if reason := _outdated(context, due):
        await messages.settle(context.pool, due, reason, context.now())
        return
    phone = due.phone
    if phone is not None and await is_stopped(context, phone):
        senders = context.settings.senders
        if due.email is None or (senders is not None and senders.mail is None):
            await messages.settle(context.pool, due, "the number's owner stopped texts", context.now())
            return
        phone = None
    said = _words(context, due)
    sender = context.settings.brand_name
    key = due.notice.notice_id
    urgent = due.notice.kind in AWAITED
    message = Message(key, phone, due.email, sender, said.subject, said.text, said.attached, urgent)
    try:
        await context.rails.message.send(message)
    except RailUnavailable as problem:
        reason = str(problem)[:200]
        await _retry_later(context, due, reason)
        return
    attached = bool(said.attached) and due.email is not None
    sent = SentText(said.subject, said.text, phone, due.email, attached, due.name)
    await messages.settle(context.pool, due, None, context.now(), seal_text(context, key, sent))
