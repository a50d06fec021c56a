"""The command moves the clock beside `cuota serve`, while processes are killed, and under load."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from support.faults.served import Client, Service, token
from support.time.receiver import receiving
from support.time.served_orders import create, run
from support.waiting import until

pytestmark = pytest.mark.faults
HOUR = timedelta(hours=1)


async def feed(served: Service, headers: dict[str, str]) -> list[tuple[str, str]]:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60, headers=headers) as http:
        answer = (await http.get("/events?limit=100")).json()
    events = answer.get("data") or answer.get("events")
    return [(event["type"], event["timestamp"]) for event in events]


async def test_an_open_order_is_abandoned_at_its_expiry_and_the_merchant_s_token_is_still_valid(
    served: Service,
) -> None:
    headers = token(served.url, await asyncio.to_thread(served.merchant))
    async with receiving() as receiver:
        record = await create(served, headers, receiver.url, approve=False)
        moved = await run(served, "time", "advance", "60d")
        assert moved["events"] == {"order.abandoned": 1}
        assert receiver.types == ["order.created", "order.abandoned"]
    assert await feed(served, headers) == [
        ("order.created", record["createdDateTime"]),
        ("order.abandoned", record["expiryDateTime"]),
    ]
    # As soon as the command ends, every process has the new time.
    for _ in range(8):
        made = await create(served, headers, "http://127.0.0.1:9/", approve=False)
        assert datetime.fromisoformat(made["createdDateTime"]) >= datetime.fromisoformat(moved["to"])
    shown = await run(served, "time")
    assert shown["aheadSeconds"] > 59 * 86400
    assert {item["what"] for item in shown["next"]} >= {"orders"}


async def test_an_advance_that_is_killed_in_the_middle_does_no_harm_and_the_next_one_continues(
    served: Service,
) -> None:
    headers = token(served.url, await asyncio.to_thread(served.merchant))
    hang = asyncio.Event()

    async def hang_once(event: dict[str, Any]) -> int:
        if event["type"] == "authorization.expiring" and not hang.is_set():
            hang.set()
            await asyncio.sleep(8)
        return 200

    async with receiving(hang_once) as receiver:
        record = await create(served, headers, receiver.url, approve=True)
        ends = datetime.fromisoformat(record["authorizationExpiryDateTime"])
        command = [sys.executable, "-m", "cuota", "time", "advance", "60d"]
        driver = await asyncio.create_subprocess_exec(
            *command, env=served.environment, stdout=subprocess.DEVNULL
        )
        await asyncio.wait_for(hang.wait(), 60)
        driver.send_signal(signal.SIGKILL)
        await driver.wait()
        reached = datetime.fromisoformat((await run(served, "time"))["now"])
        assert abs(reached - (ends - 72 * HOUR)) < HOUR
        moved = await run(served, "time", "advance", "60d")
        assert datetime.fromisoformat(moved["from"]) >= ends - 72 * HOUR
        assert receiver.types[-1] == "authorization.expired"
    happened = [(kind, datetime.fromisoformat(at)) for kind, at in (await feed(served, headers))[2:]]
    assert happened == [
        ("authorization.expiring", ends - 72 * HOUR),
        ("authorization.expiring", ends - 24 * HOUR),
        ("authorization.expired", ends),
    ]
    await run(served, "verify")


async def test_after_a_rewind_under_load_verify_finds_nothing(served: Service) -> None:
    merchant = await asyncio.to_thread(served.merchant)
    headers = token(served.url, merchant)
    orders = [
        (await create(served, headers, "http://127.0.0.1:9/", approve=True))["orderId"] for _ in range(2)
    ]
    await run(served, "time", "fork", "quiet")
    stop = asyncio.Event()
    clients = [Client(served.url, merchant, orders[n % 2]) for n in range(8)]
    tasks = [asyncio.create_task(client.run(stop, headers)) for client in clients]
    try:
        for _ in range(2):
            applied = [len(client.applied) for client in clients]
            await until(lambda: all(len(c.applied) > n for c, n in zip(clients, applied, strict=True)))  # noqa: B023
            await run(served, "time", "rewind", "quiet")
        await run(served, "time", "advance", "1m")
    finally:
        stop.set()
        await asyncio.gather(*tasks)
    assert [text for client in clients for text in client.strange] == []
    await run(served, "verify")
    await run(served, "time", "rewind", "quiet")
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60, headers=headers) as http:
        for order in orders:
            assert (await http.get(f"/order/{order}")).json()["capturedAmount"] == 0
    assert (await run(served, "verify"))["orders"] == 2
