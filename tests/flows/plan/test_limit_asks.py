"""The counts of consumers' attempts: attempts that run at the same moment never deadlock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cuota.core.plan.asking import Subject
from cuota.db.plan import asks
from support.own_service import Own

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUBJECTS = {
    subject: subject.value.encode()
    for subject in (Subject.PLAN, Subject.PHONE, Subject.NETWORK, Subject.CARD)
}
LOCK = "SELECT FROM consumer_asks WHERE subject = $1 FOR UPDATE NOWAIT"
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.mark.parametrize("update", [asks.paid, asks.give_back])
@pytest.mark.parametrize("locked", SUBJECTS)
async def test_an_attempt_that_ends_holds_no_count_while_it_waits_for_another(
    own: Own, update: Callable[..., Awaitable[Any]], locked: Subject
) -> None:
    assert await asks.ask(own.context.pool, SUBJECTS, AT) is None
    async with own.owner() as owner, own.owner() as watcher:
        async with owner.transaction():
            await owner.execute(LOCK, locked.value)
            ending = asyncio.ensure_future(update(own.context.pool, SUBJECTS, AT))
            while not await watcher.fetchval(WAITS):  # noqa: ASYNC110 - a lock that is waited for sets no event here
                await asyncio.sleep(0.01)
            for subject in SUBJECTS:
                await owner.execute(LOCK, subject.value)
        await ending
