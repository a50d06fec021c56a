"""Receivers that never answer delay an advance of the clock by seconds only. They are counted and reported."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from cuota.commands.time import travel
from cuota.core.instant import read_instant
from cuota.core.webhook.delivery import TIMETABLE
from cuota.flows.webhook.pace_webhooks import HASTY_SECONDS, HUNG_IN_A_ROW, HUNG_SECONDS
from cuota.rails.http import ACKNOWLEDGE_SECONDS, GuardedClient
from cuota.work.advance import AdvanceProgress
from support.faults.served import Service, token
from support.time.receiver import callback, fine, receiving
from support.time.sandbox import Sandbox
from support.time.served_orders import create, run
from support.waiting import until


@contextlib.asynccontextmanager
async def dead() -> AsyncIterator[str]:
    """Yield the address of a receiver that accepts each request and never answers."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(-1)
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"


@pytest.fixture
def granted(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[float]]:
    """Yield the timeouts of each receiver's attempts, by its address. The attempts themselves are real."""
    found: dict[str, list[float]] = defaultdict(list)
    post = GuardedClient.post

    async def noted(self: GuardedClient, url: str, *rest: Any, seconds: float) -> Any:
        found[url].append(seconds)
        return await post(self, url, *rest, seconds=seconds)

    monkeypatch.setattr(GuardedClient, "post", noted)
    return found


@contextlib.asynccontextmanager
async def dead_endpoints(sandbox: Sandbox, count: int) -> AsyncIterator[list[str]]:
    """Register this many hanging receivers for every event."""
    async with contextlib.AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(dead()) for _ in range(count)]
        for url in urls:
            made = await sandbox.merchant.http.post("/webhook-endpoints", json={"url": url})
            assert made.status_code == 200, made.text
        yield urls


async def test_an_advance_of_six_weeks_waits_less_than_30_seconds_for_four_dead_receivers(
    sandbox: Sandbox, granted: dict[str, list[float]]
) -> None:
    seen: list[AdvanceProgress] = []
    async with dead_endpoints(sandbox, 4) as urls:
        await sandbox.merchant.create()
        where, asked = sandbox.where, read_instant("6w")
        moved = await travel(sandbox.service.settings, where, asked, lambda *_: None, seen.append)
    # There are two events with ten attempts each. The running service may have made the first attempts.
    tries = await sandbox.fetch("SELECT receiver, sequence, at, error FROM delivery_attempts ORDER BY at")
    assert len(tries) == 4 * 2 * len(TIMETABLE)
    assert {row["error"] for row in tries} == {"no answer in time"}
    states = await sandbox.fetch("SELECT state FROM deliveries")
    assert [row["state"] for row in states] == ["parked"] * 8
    counted = moved.done.webhooks
    assert counted["attempts"] == counted["timedOut"]
    assert counted["attempts"] in {len(tries), len(tries) - 4}
    assert counted["acknowledged"] == 0
    assert sorted(moved.hung) == sorted(url.split("/")[2] for url in urls)
    for url in urls:
        full, *later = granted[url]
        assert full == ACKNOWLEDGE_SECONDS
        assert later[: HUNG_IN_A_ROW - 1] == [HUNG_SECONDS] * (HUNG_IN_A_ROW - 1)
        assert set(later[HUNG_IN_A_ROW - 1 :]) == {HASTY_SECONDS}
        assert sum(granted[url]) < 15
    # All four receivers' deliveries are due together, so the advance waits for them only once. Each still follows the
    # schedule.
    instants = sorted({row["at"] for row in tries if row["sequence"] == 2})
    assert len(instants) == len(TIMETABLE)
    for (earlier, later), planned in zip(pairwise(instants), TIMETABLE[1:], strict=True):
        assert 0.9 * planned <= (later - earlier).total_seconds() <= 1.1 * planned
    # The progress output has the clock's time, and what the advance waits for.
    assert [each.at for each in seen] == sorted(each.at for each in seen)
    assert max(each.under_way for each in seen) >= 4
    last = seen[-1]
    assert (last.attempts, last.acknowledged, last.hung) == (counted["attempts"], 0, 4)
    assert last.before < last.at <= last.target


async def test_a_healthy_receiver_beside_dead_ones_gets_all_webhooks_and_is_counted_as_acknowledged(
    sandbox: Sandbox,
) -> None:
    async with dead_endpoints(sandbox, 1), receiving(fine) as healthy:
        await sandbox.merchant.create(**callback(healthy.url))
        await until(lambda: healthy.types == ["order.created"])
        moved = await sandbox.advance("1d")
        assert healthy.types == ["order.created", "order.abandoned"]
    counted = moved.done.webhooks
    assert counted["acknowledged"] == 1
    assert counted["attempts"] == counted["timedOut"] + 1
    assert len(moved.hung) == 1


@pytest.mark.faults
async def test_the_command_prints_lines_while_it_waits_and_counts_attempts_apart_from_acknowledgments(
    served: Service,
) -> None:
    headers = token(served.url, await asyncio.to_thread(served.merchant))
    async with dead() as url:
        await create(served, headers, url, approve=False)
        command = [sys.executable, "-m", "cuota", "time", "advance", "1d", "--json"]
        process = await asyncio.create_subprocess_exec(
            *command,
            env=served.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, told = await process.communicate()
        again = await asyncio.to_thread(served.run, "time", "advance", "1w")
    facts = json.loads(printed)
    counted = facts["webhooks"]
    assert counted["attempts"] == counted["timedOut"] > 0
    assert counted["acknowledged"] == 0
    assert facts["receiversThatTimedOut"] == [url.split("/")[2]]
    # The service's own first attempt takes the full ten seconds, which is long enough for a progress line.
    assert "Moving the clock: " in told.decode()
    assert " so far" in told.decode()
    assert "webhook attempts (none acknowledged)" in again.stdout
    assert "These receivers did not answer in time: 127.0.0.1:" in again.stdout
    await run(served, "verify")
