"""Texts and mails are sent apart: a mail server that hangs delays no text."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from cuota.core.message import Message
from cuota.flows.plan.send_messages import BATCH
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


async def test_a_text_is_sent_while_more_mails_than_a_batch_wait_for_the_mail_server(own: Own) -> None:
    shop, rail = own.auto_merchant, HangingMails()
    mailed, texted = await shop.create(), await shop.create()
    for order in (mailed, texted):
        await complete(own.service, shop.merchant_id, order)
    at = own.context.now() - timedelta(hours=1)
    async with own.owner() as connection:
        await connection.execute("DELETE FROM messages")
        await connection.execute(
            "UPDATE plans SET payer = (payer::jsonb || jsonb_build_object('email', 'ana@example.com'))::json WHERE order_id = $1",
            mailed["orderId"],
        )
        await connection.execute(
            "UPDATE plans SET payer = (payer::jsonb - 'email')::json WHERE order_id = $1", texted["orderId"]
        )
        # The text is due last.
        await connection.executemany(
            "INSERT INTO messages (merchant_id, order_id, message_id, kind, installment, amount, day, try_at, state,"
            " created_at)"
            " VALUES ($1, $2, $3, 'payment_received', 1, 2500, current_date, $4, 'pending', $4)",
            [(shop.merchant_id, mailed["orderId"], uuid4(), at) for _ in range(2 * BATCH)]
            + [(shop.merchant_id, texted["orderId"], uuid4(), at + timedelta(minutes=1))],
        )
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
