"""A session at the coordinator of a Citus cluster that tells which commands it sends to workers, and a new order."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from cuota.core.order.event import Event
from cuota.core.order.order import Order, Status
from cuota.db.order.outcomes import NewOrder
from cuota.flows.context import new_id, new_token

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WORKER_OF = """SELECT nodeport FROM citus_shards WHERE table_name = 'orders'::regclass
    AND shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""


@dataclass
class Cluster:
    """A session at the coordinator with the service's settings, and the commands that it sent to workers."""

    session: asyncpg.Connection
    url: str
    sent: list[str] = field(default_factory=list)

    async def commands(self, asked: Awaitable[Any]) -> tuple[Any, list[str]]:
        """What was answered, and the first words of each command that was sent for it."""
        self.sent.clear()
        answer = await asked
        issued = [re.sub(r"^issuing ", "", text) for text in self.sent if text.startswith("issuing ")]
        return answer, [re.split(r"[(']", " ".join(text.split()))[0] for text in issued]


def created(merchant_id: UUID) -> NewOrder:
    order = Order(
        merchant_id=merchant_id,
        order_id=new_id(),
        version=1,
        status=Status.CREATED,
        currency="USD",
        amount=10_000,
        fee=0,
        auto_capture=False,
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        events=1,
    )
    return NewOrder(order, new_token(), "reference", "{}", (Event("order.created", order.amount),))
