"""The jobs that send messages to consumers."""

from __future__ import annotations

from cuota.db.plan.messages import Channel
from cuota.flows.context import Context
from cuota.flows.plan.send_messages import send_messages


async def send_due_texts(context: Context) -> int:
    """Send the due text messages. Return how many there were."""
    return await send_messages(context, Channel.TEXT)


async def send_due_mails(context: Context) -> int:
    """Send the due mails. Return how many there were."""
    return await send_messages(context, Channel.MAIL)
