"""Readiness and metrics are always admitted and need no token.

Even very frequent requests for them do not affect other requests.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cuota import config
from cuota.web.server.metrics import Sparing
from support.ports import free_port
from support.running import running
from support.server.crowd import port_of

READY = b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_endless_readiness_requests_do_not_use_up_the_database_s_sessions(
    settings: config.Settings, own_database: dict[str, object]
) -> None:
    # A separate service: no work that another test left behind uses a session of its pool.
    own = replace(settings, public_url=f"http://127.0.0.1:{free_port()}")
    async with running(own, own_database) as service:
        pool, busiest, answered = service.context.pool, 0, 0

        async def ask() -> None:
            nonlocal answered
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
            for _ in range(10):
                writer.write(READY)
                said = await reader.readuntil(b'{"status":"ok"}')
                answered += said.startswith(b"HTTP/1.1 200")
            writer.close()

        asking = asyncio.gather(*(ask() for _ in range(60)))
        while not asking.done():
            size, idle = pool.sizes()
            busiest = max(busiest, size - idle)
            await asyncio.sleep(0)
        await asking
    assert answered == 600
    assert busiest == 1


def test_adding_up_metrics_takes_at_most_a_tenth_of_the_time_and_otherwise_the_last_sum_is_returned() -> None:
    made, spent, now = 0, 0.0, 100.0

    def make() -> bytes:
        nonlocal made, spent
        made, spent = made + 1, spent + 0.03
        return b"%d" % made

    sparing = Sparing(make, 0.1, spent=lambda: spent, now=lambda: now)
    assert [sparing() for _ in range(6)] == [b"1", b"2", b"3", b"4", b"4", b"4"]
    now += 0.9
    assert sparing() == b"4"
    now += 0.2
    assert [sparing() for _ in range(6)] == [b"5", b"6", b"7", b"8", b"8", b"8"]
