"""The context that every flow receives: settings, database, rails, secrets, the clock, and the source of ids."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID
from weakref import WeakValueDictionary

from cuota.config import Settings
from cuota.core.order.event import Event
from cuota.core.risk.decision import Decision
from cuota.core.risk.policy import Policy
from cuota.core.risk.review import ReviewState
from cuota.db.apart import LateMerchants
from cuota.db.pool import Pool
from cuota.db.vault import Vault
from cuota.rails.load import Rails

_RANDOM_BITS = 62


def utc_now() -> datetime:
    """Return the current time of the real clock."""
    return datetime.now(UTC)


def new_id() -> UUID:
    """Return a UUIDv7 with the time of the machine's own clock."""
    return id_at(time.time_ns())


def id_at(nanoseconds: int) -> UUID:
    """Return a new UUIDv7 with a time since 1970. Ids are ordered by time to a quarter of a microsecond; the rest is random."""
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    fraction = (rest << 12) // 1_000_000
    tail = int.from_bytes(os.urandom(8), "big") >> 2
    return UUID(int=(milliseconds << 80) | (7 << 76) | (fraction << 64) | (2 << _RANDOM_BITS) | tail)


def new_token() -> UUID:
    """Return a checkout token: a random UUID (version 4)."""
    return UUID(bytes=secrets.token_bytes(16), version=4)


def _unnoticed(happened: object) -> None:
    del happened


def _unwatched(waiting: int, running_out: int) -> None:
    del waiting, running_out


def _uncounted(rail: str, kind: str) -> None:
    del rail, kind


@dataclass(frozen=True)
class Context:
    """Everything that a flow needs from outside, as one argument.

    Tests and the sandbox's clock replace parts of it. `now` is the service's time, and `real_now` the same without the sandbox's offset.

    `happened` is called with every event after it is saved, `decided` with every decision and referral, `reviewed` with how each
    review ended, `reviews_wait` with the number of reviews that wait and of those that run out soon, and `texted` with the result of
    every one-time code (sent, failed, or the rate limit that refused it), `card_event` with the rail and the kind of every event
    of a card processor that was applied; the metrics count these. From `agreement_values_from` on (the real clock), plans have the values
    of their agreement, not its text. `sealed` are the versions of
    the policies with which this process has decided. `late` has, for each job, the merchants for which the job has just failed.
    """

    settings: Settings
    pool: Pool
    rails: Rails
    vault: Vault
    policy: Policy
    agreement_values_from: datetime
    now: Callable[[], datetime] = utc_now
    real_now: Callable[[], datetime] = utc_now
    new_id: Callable[[], UUID] = new_id
    happened: Callable[[Event], None] = _unnoticed
    decided: Callable[[Decision], None] = _unnoticed
    reviewed: Callable[[ReviewState], None] = _unnoticed
    reviews_wait: Callable[[int, int], None] = _unwatched
    texted: Callable[[str], None] = _unnoticed
    card_event: Callable[[str, str], None] = _uncounted
    sealed: set[str] = field(default_factory=set)
    late: defaultdict[str, LateMerchants] = field(default_factory=lambda: defaultdict(LateMerchants))
    locks: WeakValueDictionary[UUID, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def each_apart(
        self, what: str, merchants: Sequence[UUID], act: Callable[[UUID], Awaitable[int]]
    ) -> int:
        """Call `act` for each merchant, and return the sum of the results. An error for one merchant does not stop the others."""
        return await self.late[what].each(what, merchants, act)

    def lock(self, busy: UUID) -> asyncio.Lock:
        """Return this process's lock for an order or a consumer.

        Requests for the same order wait for this lock, so that none of them holds a database session while waiting.
        """
        return self.locks.setdefault(busy, asyncio.Lock())
