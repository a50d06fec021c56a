"""A busy order's events follow one another: each is sent when the previous one is acknowledged, not at the worker's next poll.

`pytest -s tests/flows/webhook/test_in_turn.py` prints how long each took.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from cuota.work.loop import Signals, work
from support.webhook.couriers import Post, until
from support.webhook.listeners import hooked

CAPTURES = 40
EVENTS = CAPTURES + 2
# If each event waited for the worker's next poll, half a second later, the total would be twice this long.
SECONDS = 60.0


async def busy_order(post: Post) -> None:
    order = await post.merchant.approved("100.00")
    for first in range(0, CAPTURES, 8):
        moves = (post.merchant.move(order, "capture", "0.01", f"c{first + n}") for n in range(8))
        assert {answer.status_code for answer in await asyncio.gather(*moves)} == {200}
    await post.publish()


@pytest.mark.parametrize("takes", [0.0, 0.05])
async def test_the_events_of_an_order_are_sent_as_fast_as_they_are_acknowledged(
    post: Post, takes: float
) -> None:
    async with hooked(pause=lambda: takes) as (hook, listener):
        await post.register(listener.url)
        await busy_order(post)
        signals = Signals(asyncio.Event(), asyncio.Event())
        began = time.monotonic()
        worker = asyncio.create_task(work(post.own.context, signals))
        try:
            await until(lambda: len(hook.gave) == EVENTS, SECONDS)
        finally:
            each = (time.monotonic() - began) / EVENTS
            print(f"\nreceiver that takes {1000 * takes:.0f} ms: {1000 * each:.0f} ms an event")
            signals.stop.set()
            await worker
        assert hook.sequences == list(range(1, EVENTS + 1))
