"""What every flow is handed: settings, database, rails, secrets, and where time and ids come from."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID
from weakref import WeakValueDictionary

from cuota.config import Settings
from cuota.core.order.event import Event
from cuota.core.risk.decision import Decision
from cuota.core.risk.policy import Policy
from cuota.db.pool import Pool
from cuota.db.vault import Vault
from cuota.rails.load import Rails

_RANDOM_BITS = 62


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def new_id() -> UUID:
    """A UUIDv7: ordered by time to a quarter of a microsecond within one process, then random."""
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    fraction = (rest << 12) // 1_000_000
    tail = int.from_bytes(os.urandom(8), "big") >> 2
    return UUID(int=(milliseconds << 80) | (7 << 76) | (fraction << 64) | (2 << _RANDOM_BITS) | tail)


def new_token() -> UUID:
    """A checkout token: a random GUID (version 4)."""
    return UUID(bytes=secrets.token_bytes(16), version=4)


def _unnoticed(happened: object) -> None:
    del happened


@dataclass(frozen=True)
class Context:
    """Handed in, so that a test or the sandbox's clock can move time, ids and rails.

    `happened` is told of every event once it is durable, `decided` of every decision,
    `texted` of every one-time code (sent, failed, or the limit that refused it): the metrics count them.
    `sealed` are the policies that this process has decided by.
    """

    settings: Settings
    pool: Pool
    rails: Rails
    vault: Vault
    policy: Policy
    now: Callable[[], datetime] = utc_now
    new_id: Callable[[], UUID] = new_id
    happened: Callable[[Event], None] = _unnoticed
    decided: Callable[[Decision], None] = _unnoticed
    texted: Callable[[str], None] = _unnoticed
    sealed: set[str] = field(default_factory=set)
    locks: WeakValueDictionary[UUID, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def lock(self, busy: UUID) -> asyncio.Lock:
        """One lock an order, or a consumer, in this process: contenders wait here, not each with a session in hand."""
        return self.locks.setdefault(busy, asyncio.Lock())
