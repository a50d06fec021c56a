"""Which times an operator may set, and what always uses the real clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from cuota.core.instant import BadInstant, read_instant, timestamp
from cuota.db.sandbox import clock as db_clock
from cuota.db.session import Session
from cuota.flows.checkout.identify_consumer import check_code, send_code
from cuota.flows.checkout.take_step import load, open_checkout
from cuota.flows.context import utc_now
from cuota.flows.sandbox.clock import SandboxClock
from cuota.flows.sandbox.standstill import Standstill
from support.makers import order_body, read_checkout
from support.time.receiver import receiving
from support.time.sandbox import Sandbox
from support.waiting import until

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("90m", NOW + timedelta(minutes=90)),
        ("36h", NOW + timedelta(hours=36)),
        ("14d", NOW + timedelta(days=14)),
        ("6w", NOW + timedelta(weeks=6)),
        ("2026-12-25", datetime(2026, 12, 25, tzinfo=UTC)),
        ("2026-12-25T09:30Z", datetime(2026, 12, 25, 9, 30, tzinfo=UTC)),
        ("2026-12-25 09:30:15-08:00", datetime(2026, 12, 25, 17, 30, 15, tzinfo=UTC)),
        ("1825d", NOW + timedelta(days=1825)),
    ],
)
def test_a_span_or_an_instant_is_read(text: str, then: datetime) -> None:
    assert read_instant(text).after(NOW) == then


@pytest.mark.parametrize(
    "text",
    [
        "",
        "14",
        "d",
        "-1d",
        "1.5d",
        "14 d",
        "14D",
        "1y",
        "\u0661d",
        "tomorrow",
        "2026-13-01",
        "2026-02-30",
        "20261225",
    ],
)
def test_a_text_that_is_no_instant_is_refused_and_the_error_lists_the_possible_forms(text: str) -> None:
    with pytest.raises(BadInstant, match=r"Give a span|not a valid date"):
        read_instant(text)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(BadInstant, match="no time zone"):
        read_instant("2026-12-25T09:30")


@pytest.mark.parametrize("text", ["9999999w", "9999999d", "2099-01-01", "9999-12-31T23:59-23:59"])
def test_a_time_that_is_too_far_away_is_refused_without_an_overflow(text: str) -> None:
    with pytest.raises(BadInstant, match=r"5 years|not a valid date"):
        read_instant(text).after(NOW)


async def test_a_token_and_a_browser_s_session_are_still_valid_after_the_clock_moves_by_sixty_days(
    sandbox: Sandbox,
) -> None:
    order = await sandbox.merchant.create()
    opened = await open_checkout(sandbox.context, sandbox.merchant.merchant_id, UUID(order["token"]))
    assert opened is not None
    await sandbox.advance("60d")
    assert (await sandbox.merchant.http.get("/configuration")).status_code == 200
    order_id, secret = opened
    assert await load(sandbox.context, sandbox.merchant.merchant_id, order_id, secret) is not None
    assert await sandbox.merchant.token()


async def test_a_browser_s_session_ends_a_day_of_real_time_after_it_was_opened(sandbox: Sandbox) -> None:
    await sandbox.advance("3d")
    order = await sandbox.merchant.create()
    opened = await open_checkout(sandbox.context, sandbox.merchant.merchant_id, UUID(order["token"]))
    assert opened is not None
    order_id, secret = opened
    kept = (await sandbox.fetch("SELECT created_at FROM checkout_sessions"))[0]["created_at"]
    assert abs(utc_now() - kept) < timedelta(minutes=5)
    await sandbox.fetch("UPDATE checkout_sessions SET created_at = now() - interval '25 hours'")
    assert await load(sandbox.context, sandbox.merchant.merchant_id, order_id, secret) is None


async def test_a_one_time_code_is_valid_for_ten_minutes_of_real_time(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.create()
    merchant_id = sandbox.merchant.merchant_id
    opened = await open_checkout(sandbox.context, merchant_id, UUID(order["token"]))
    assert opened is not None
    seen = await read_checkout(sandbox.context, merchant_id, *opened)
    await send_code(sandbox.context, seen, "2125550142")
    await sandbox.advance("30m")
    seen = await read_checkout(sandbox.context, merchant_id, *opened)
    assert await check_code(sandbox.context, seen, "123456")


async def test_an_idempotency_key_is_valid_for_a_day_of_real_time(sandbox: Sandbox) -> None:
    headers, body = {"Idempotency-Key": "once"}, order_body()
    first = await sandbox.merchant.http.post("/order", json=body, headers=headers)
    await sandbox.advance("30d")
    again = await sandbox.merchant.http.post("/order", json=body, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()


async def test_a_rotated_endpoint_secret_signs_for_a_day_of_real_time(sandbox: Sandbox) -> None:
    async with receiving() as receiver:
        http = sandbox.merchant.http
        made = (await http.post("/webhook-endpoints", json={"url": receiver.url})).json()
        endpoint = made.get("id") or made["endpointId"]
        assert (await http.post(f"/webhook-endpoints/{endpoint}/rotate-secret")).status_code == 200
        await sandbox.advance("5d")
        await sandbox.merchant.create()
        await until(lambda: receiver.got)
    assert len(receiver.got[0][0]["webhook-signature"].split()) == 2


async def test_a_new_order_has_the_service_s_time(sandbox: Sandbox) -> None:
    moved = await sandbox.advance("2026-12-25" if utc_now() < datetime(2026, 12, 24, tzinfo=UTC) else "40d")
    record = await sandbox.merchant.read(await sandbox.merchant.create())
    made = datetime.fromisoformat(record["createdDateTime"])
    assert timedelta(0) <= made - moved.after.replace(microsecond=0) < timedelta(minutes=5)


async def test_if_the_process_that_moves_the_clock_dies_the_clock_continues_from_its_last_time(
    sandbox: Sandbox,
) -> None:
    """This is the state after `kill -9`: the clock stands still at an instant, and no process extends the lease."""
    before = await sandbox.now()
    at = before + timedelta(days=7)
    await sandbox.fetch(
        "UPDATE sandbox_clock SET held_at = $1, ahead = $1 - clock_timestamp(),"
        " moving_until = clock_timestamp() + interval '1 second'", at,
    )  # fmt: skip
    clock = sandbox.service.clock
    await until(lambda: clock.now() == at)
    await until(lambda: not clock.moving)  # type: ignore[attr-defined]
    assert at < await sandbox.now() < at + timedelta(minutes=5)
    assert at < clock.now() < at + timedelta(minutes=5)
    await sandbox.advance("1d")
    assert await sandbox.now() >= at + timedelta(days=1)


@pytest.mark.parametrize("goes_on", [db_clock.extend, db_clock.end])
async def test_the_clock_does_not_go_back_if_the_process_that_moves_it_goes_on_after_a_standstill(
    sandbox: Sandbox, goes_on: Callable[[Session], Awaitable[None]]
) -> None:
    """This is the state an hour after Ctrl-Z: the lease has ended, so the clock runs, and orders have been made at its times."""
    at = await sandbox.now() + timedelta(days=7)
    await sandbox.fetch(
        "UPDATE sandbox_clock SET held_at = $1, ahead = $1 - clock_timestamp() + interval '1 hour',"
        " moving_until = clock_timestamp() - interval '1 second'", at,
    )  # fmt: skip
    ran_on = await sandbox.now()
    assert ran_on >= at + timedelta(hours=1)
    await goes_on(sandbox.context.pool)
    assert await sandbox.now() >= ran_on


async def test_losing_the_database_does_not_change_the_clock(sandbox: Sandbox) -> None:
    await sandbox.advance("9d")
    await sandbox.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    clock = sandbox.service.clock
    assert clock.now() - utc_now() > timedelta(days=8)
    # The worker takes its lock again and follows the clock, so the clock can be moved again.
    moved = await sandbox.advance("1d")
    assert clock.now() >= moved.after
    async with receiving() as receiver:
        await sandbox.merchant.http.post("/webhook-endpoints", json={"url": receiver.url})
        await sandbox.merchant.create()
        await until(lambda: receiver.got)


async def test_during_a_copy_of_the_sandbox_a_request_waits_and_is_finally_refused(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.web.server.standing.WAIT_SECONDS", 1.0)
    await sandbox.fetch(
        "UPDATE sandbox_clock SET closed = true, moving_until = clock_timestamp() + interval '1 hour'"
    )
    await until(lambda: not sandbox.standstill.requests.is_open)
    async with httpx.AsyncClient(
        base_url=sandbox.service.settings.public_url, trust_env=False, timeout=60
    ) as bare:
        answer = await bare.get("/configuration")
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["X-Request-Id"] == answer.json()["requestId"]
        assert (await bare.get("/health/live")).status_code == 200
        page, token = await asyncio.gather(bare.get("/account"), bare.post("/oauth/token/", json={}))
        assert (page.status_code, page.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
        assert "We cannot answer right now" in page.text
        assert (token.status_code, token.json()["error"]) == (503, "temporarily_unavailable")
    await sandbox.fetch("UPDATE sandbox_clock SET closed = false, moving_until = NULL")
    await until(lambda: sandbox.standstill.requests.is_open)
    assert (await sandbox.merchant.http.get("/configuration")).status_code == 200


async def test_a_worker_without_its_lock_runs_no_job_and_says_so_in_the_log(
    own_database: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that moves the clock has hung while this process starts. Its jobs begin once the move has ended."""
    monkeypatch.setattr("cuota.flows.sandbox.standstill.HELD_UP_SECONDS", 0.2)
    mover = await asyncpg.connect(**own_database)
    await mover.fetch("SELECT pg_advisory_lock($1)", 0x43756F74614A)
    standstill, stop = Standstill(own_database, SandboxClock(), lambda: None), asyncio.Event()
    keeper = asyncio.create_task(standstill.keep(stop))
    await asyncio.sleep(0.5)
    assert not standstill.jobs.is_open
    await until(lambda: "no background job runs" in caplog.text)
    await mover.close()
    await until(lambda: standstill.jobs.is_open)
    stop.set()
    await keeper
    assert timestamp(NOW) == "2026-03-01T12:30:00.000Z"
