"""Texts and mails are sent apart: a mail server that hangs delays no text."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.core.message import Message
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import AWAITED, Notice, NoticeKind
from cuota.db.order.orders import Found
from cuota.db.plan import messages
from cuota.db.plan.messages import Channel
from cuota.flows.plan.send_messages import BATCH
from cuota.flows.settle import settle
from cuota.work.messages import send_due_mails, send_due_texts
from support.makers import complete
from support.own_service import Own


class HangingMails:
    """A message rail whose mail server accepts nothing until `answers` is set. Texts arrive at once."""

    shown_code = None

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.sent: Counter[str] = Counter()

    async def send(self, message: Message) -> None:
        if message.email is not None:
            await self.answers.wait()
        self.sent["text" if message.email is None else "mail"] += 1


async def received(own: Own, order: dict[str, Any], count: int, at: datetime) -> None:
    """Store messages about a payment, as a decision does."""
    await stored(own, order, [NoticeKind.PAYMENT_RECEIVED] * count, at)


async def stored(own: Own, order: dict[str, Any], kinds: Sequence[NoticeKind], at: datetime) -> None:
    def decide(found: Found) -> Outcome:
        notices = tuple(Notice(uuid4(), kind, 1, 2500, at.date(), at) for kind in kinds)
        return Outcome(order=found.order, notices=notices, at=at)

    await settle(own.context, own.auto_merchant.merchant_id, UUID(order["orderId"]), decide)


async def give_mail(own: Own, order: dict[str, Any], email: str | None) -> None:
    """Give the payer this mail address, or none. Delete the messages so far."""
    async with own.owner() as connection:
        await connection.execute("DELETE FROM messages WHERE order_id = $1", order["orderId"])
        await connection.execute(
            "UPDATE plans SET payer = (payer::jsonb - 'email' || $2::jsonb)::json WHERE order_id = $1",
            order["orderId"],
            json.dumps({"email": email} if email else {}),
        )


@pytest.mark.parametrize(
    ("email", "texts"),
    [("ana@example.com", AWAITED), (None, frozenset(NoticeKind) - {NoticeKind.DECLINED})],
    ids=["a payer with a mail address", "a payer without one"],
)
async def test_a_message_is_claimed_with_the_channel_that_its_kind_and_its_payer_need(
    own: Own, email: str | None, texts: frozenset[NoticeKind]
) -> None:
    order = await own.auto_merchant.create()
    await complete(own.service, own.auto_merchant.merchant_id, order)
    await give_mail(own, order, email)
    await stored(own, order, list(NoticeKind), own.context.now())
    claimed = {}
    for channel in Channel:
        due = await messages.claim(own.context.pool, own.context.now(), 2 * len(NoticeKind), channel)
        claimed[channel] = Counter(each.notice.kind for each in due)
    assert claimed == {Channel.TEXT: Counter(texts), Channel.MAIL: Counter(frozenset(NoticeKind) - texts)}


async def test_a_text_is_sent_while_more_mails_than_a_batch_wait_for_the_mail_server(own: Own) -> None:
    shop, rail = own.auto_merchant, HangingMails()
    mailed, texted = await shop.create(), await shop.create()
    for order in (mailed, texted):
        await complete(own.service, shop.merchant_id, order)
    at = own.context.now() - timedelta(hours=1)
    await give_mail(own, mailed, "ana@example.com")
    await give_mail(own, texted, None)
    # The text is due last.
    await received(own, mailed, 2 * BATCH, at)
    await received(own, texted, 1, at + timedelta(minutes=1))
    context = replace(own.context, rails=replace(own.context.rails, message=rail))  # type: ignore[arg-type]
    mails = asyncio.create_task(send_due_mails(context))
    try:
        async with asyncio.timeout(20):
            await send_due_texts(context)
        assert rail.sent == {"text": 1}
    finally:
        rail.answers.set()
        assert await mails == BATCH
    assert rail.sent == {"text": 1, "mail": BATCH}
