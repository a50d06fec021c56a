"""A busy order's events follow one another: each is sent when the previous one is acknowledged, not at the worker's next poll.

`pytest -s tests/flows/webhook/test_in_turn.py` prints how long each took.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from cuota.work import loop
from cuota.work.loop import Job, Signals, work
from cuota.work.webhooks import Webhooks
from support.waiting import until
from support.webhook.couriers import Post
from support.webhook.listeners import hooked

CAPTURES = 40
EVENTS = CAPTURES + 2
jobs_of = loop.jobs_of


@pytest.fixture(autouse=True)
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker looks for due webhooks when it starts and when a result was recorded. Its next poll is hours away."""

    def jobs(webhooks: Webhooks) -> tuple[Job, ...]:
        return tuple(replace(job, rest=36_000.0) if job.wakes else job for job in jobs_of(webhooks))

    monkeypatch.setattr(loop, "jobs_of", jobs)


async def busy_order(post: Post) -> None:
    order = await post.merchant.approved("100.00")
    for first in range(0, CAPTURES, 8):
        moves = (post.merchant.move(order, "capture", "0.01", f"c{first + n}") for n in range(8))
        assert {answer.status_code for answer in await asyncio.gather(*moves)} == {200}
    await post.publish()


@pytest.mark.parametrize("takes", [0.0, 0.05])
async def test_an_orders_events_follow_one_another_when_they_are_acknowledged(
    post: Post, takes: float
) -> None:
    async with hooked(pause=lambda: takes) as (hook, listener):
        await post.register(listener.url)
        await busy_order(post)
        signals = Signals(asyncio.Event(), asyncio.Event())
        began = time.monotonic()
        worker = asyncio.create_task(work(post.own.context, signals))
        try:
            await until(lambda: len(hook.gave) == EVENTS)
        finally:
            each = (time.monotonic() - began) / EVENTS
            print(f"\nreceiver that takes {1000 * takes:.0f} ms: {1000 * each:.0f} ms an event")
            signals.stop.set()
            await worker
        assert hook.sequences == list(range(1, EVENTS + 1))
