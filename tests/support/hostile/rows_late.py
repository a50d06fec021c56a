"""Row W08 of bad_inputs.csv: a webhook receiver that answers just before, and just after, the timeout."""

from __future__ import annotations

import asyncio

from cuota.core.webhook.delivery import Attempt
from cuota.rails.http import GuardedClient
from support.hostile.world import Row, World, asks
from support.webhook.listeners import Serve, listening, read_request


def answering_after(seconds: float) -> Serve:
    """Run a receiver that answers 200 after this many seconds."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await asyncio.sleep(seconds)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    return serve


@asks("W08")
async def late(world: World, row: Row) -> None:
    # The timeout is ten seconds. On a busy machine, the early answer comes a little earlier than the row says.
    client = GuardedClient(loopback=True)
    try:
        async with listening(answering_after(9.0)) as early, listening(answering_after(10.1)) as too_late:
            attempts: list[Attempt] = await asyncio.gather(
                *(
                    client.post(each.url, [("Content-Type", "application/json")], b"{}")
                    for each in (early, too_late)
                )
            )
    finally:
        await client.close()
    assert [(each.acknowledged, each.status) for each in attempts] == [(True, 200), (False, None)], row
