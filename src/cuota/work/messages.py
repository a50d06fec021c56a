"""The job that sends messages to consumers."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.plan.send_messages import send_messages


async def send_due_messages(context: Context) -> int:
    """Send the due messages. Return how many there were."""
    return await send_messages(context)
