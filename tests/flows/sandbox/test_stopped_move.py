"""The service stops in the middle of a clock move that the dashboard began. The next move continues where it ended."""

from __future__ import annotations

import asyncio
import re
import signal
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from support.faults.books import books
from support.faults.served import Service, token
from support.time.receiver import receiving
from support.time.served_orders import create, run

pytestmark = pytest.mark.faults
HOUR = timedelta(hours=1)
CHARGES = """SELECT count(*), count(DISTINCT (c.order_id, c.installment)) FROM charges c
    JOIN card_simulator.charges s ON s.key = c.charge_id WHERE c.state = 'succeeded' AND s.approved"""


def paid(served: Service) -> tuple[int, int]:
    """Return how many charges the card paid, and how many installments they paid."""
    with books(served.data) as opened:
        (row,) = opened.rows(CHARGES)
        return row[0], row[1]


async def moved_by_the_dashboard(served: Service, merchant: dict[str, str]) -> None:
    """Sign in as the merchant's owner and move the clock by a week. The answer comes before the move has ended."""
    printed = await asyncio.to_thread(served.run, "desk", "link", "--merchant", merchant["merchantId"])
    link = re.search(r"http\S+", printed.stdout)
    assert link is not None, printed
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60) as browser:
        entered = await browser.post(link[0], data={"csrf": await csrf(browser, link[0])})
        assert entered.status_code == 303, entered.text
        page = "/desk/sandbox"
        sent = await browser.post(page, data={"csrf": await csrf(browser, page), "by": "1w"})
        assert sent.status_code == 303, sent.text


async def csrf(browser: httpx.AsyncClient, page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', (await browser.get(page)).text)
    assert found is not None
    return found[1]


async def test_a_stop_in_the_middle_of_a_move_from_the_dashboard_charges_nothing_twice_and_the_next_move_continues(
    served: Service,
) -> None:
    merchant = await asyncio.to_thread(served.merchant)
    headers = token(served.url, merchant)
    hang, goes_on = asyncio.Event(), asyncio.Event()

    async def hang_once(event: dict[str, Any]) -> int:
        if event["type"] == "authorization.expiring" and not hang.is_set():
            hang.set()
            await goes_on.wait()
        return 200

    async with receiving(hang_once) as receiver:
        record = await create(served, headers, receiver.url, approve=True)
        ends = datetime.fromisoformat(record["authorizationExpiryDateTime"])
        await run(served, "time", "advance", "8d")
        await moved_by_the_dashboard(served, merchant)
        await asyncio.wait_for(hang.wait(), 60)
        process = served.started[-1]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0
        await asyncio.to_thread(served.start, 2)
        reached = datetime.fromisoformat((await run(served, "time"))["now"])
        assert abs(reached - (ends - 72 * HOUR)) < HOUR
        goes_on.set()
        await run(served, "time", "advance", "60d")
        assert receiver.types[-1] == "authorization.expired"
    charged, installments = await asyncio.to_thread(paid, served)
    assert charged == installments == 1
    await run(served, "verify")
