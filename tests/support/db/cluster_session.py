"""A session at the coordinator of a Citus cluster that records the commands sent to workers."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import asyncpg

WORKER_OF = """SELECT nodeport FROM citus_shards WHERE table_name = 'orders'::regclass
    AND shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""


@dataclass
class Cluster:
    """A session at the coordinator with the service's settings, and the commands that Citus sent to
    workers."""

    session: asyncpg.Connection
    url: str
    sent: list[str] = field(default_factory=list)

    async def commands(self, asked: Awaitable[Any]) -> tuple[Any, list[str]]:
        """Return the result, and the first words of each command that Citus sent to a worker for it."""
        self.sent.clear()
        answer = await asked
        issued = [re.sub(r"^issuing ", "", text) for text in self.sent if text.startswith("issuing ")]
        return answer, [re.split(r"[(']", " ".join(text.split()))[0] for text in issued]
