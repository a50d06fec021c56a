"""The messages that were sent to a consumer: encrypted when they are sent, and decrypted for the operator's people."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.plan import consumer_messages
from cuota.db.plan.messages import SentText
from cuota.db.position import Position
from cuota.db.row_security import everyone
from cuota.flows.context import Context


@dataclass(frozen=True, slots=True)
class ConsumerMessage:
    """One message. `text` is None if the message was not sent, was sent by an earlier release, or was erased."""

    order_id: UUID
    message_id: UUID
    kind: str
    state: str
    reason: str | None
    created_at: datetime
    settled_at: datetime | None
    text: SentText | None


def _bound_to(message_id: UUID) -> str:
    return f"message:{message_id}"


def seal_text(context: Context, message_id: UUID, sent: SentText) -> bytes:
    """Encrypt the text and the recipient of a message."""
    return context.vault.encrypt(json.dumps(asdict(sent)), _bound_to(message_id), packed=True)


def open_text(context: Context, message_id: UUID, said: bytes | None) -> SentText | None:
    """Decrypt a message."""
    return (
        None if said is None else SentText(**json.loads(context.vault.decrypt(said, _bound_to(message_id))))
    )


async def read_messages(
    context: Context, consumer_id: UUID, after: Position | None, limit: int
) -> list[ConsumerMessage]:
    """Return the messages to a consumer about the orders of all merchants, newest first."""
    with everyone():
        found = await consumer_messages.page(context.pool, consumer_id, after, limit)
    return [
        ConsumerMessage(
            each.order_id, each.message_id, each.kind, each.state, each.reason, each.created_at, each.settled_at,
            open_text(context, each.message_id, each.said),
        )
        for each in found
    ]  # fmt: skip
