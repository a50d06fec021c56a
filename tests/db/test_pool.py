"""Sessions have short timeouts and the service's own role, requests wait only shortly for one, and a database that
could lose commits is refused."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest

from cuota.core.refusal import Code, Refused
from cuota.db.embedded import cluster as embedded_cluster
from cuota.db.embedded.answer import accepts
from cuota.db.embedded.folders import DATABASE, OWNER, PORT, prepare
from cuota.db.embedded.programs import binaries_for
from cuota.db.migrate import migrate
from cuota.db.open_pool import open_pool
from cuota.db.pool import GONE, UnsafeDatabase
from cuota.web.problem import status_of
from support.db.embedded_processes import until
from support.folders import new_folder


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("lock_timeout", "2s"),
        ("statement_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "5s"),
        ("TimeZone", "UTC"),
        ("session_authorization", "cuota_service"),
        ("role", "none"),
        ("application_name", "cuota"),
        ("synchronous_commit", "on"),
    ],
)
async def test_every_session_has_its_settings_in_force(
    product_limits: None, own_database: dict[str, Any], setting: str, value: str
) -> None:
    pool = await open_pool(own_database, 2)
    async with pool.session() as first, pool.session() as second:
        for connection in (first, second):
            assert await connection.fetchval("SELECT current_setting($1)", setting) == value
    await pool.close()


async def test_a_statement_that_hangs_is_ended_by_the_database(
    product_limits: None, own_database: dict[str, Any]
) -> None:
    pool = await open_pool(own_database, 1)
    with pytest.raises(asyncpg.QueryCanceledError):
        await pool.fetchrow("SELECT pg_sleep(30)")
    await pool.close()


async def test_sessions_are_given_to_requests_in_the_order_of_arrival(
    own_database: dict[str, Any],
) -> None:
    pool = await open_pool(own_database, 1)
    had: list[int] = []

    async def take(number: int) -> None:
        async with pool.session():
            had.append(number)

    async def hold() -> None:
        async with pool.session():
            await asyncio.sleep(0.01)

    holding = asyncio.create_task(hold())
    await asyncio.sleep(0.005)
    takers = []
    # A new taker starts in each iteration of the event loop, also in the one in which a session is released.
    while len(takers) < 10 or len(had) < 10:
        takers.append(asyncio.create_task(take(len(takers))))
        await asyncio.sleep(0)
    await asyncio.gather(holding, *takers)
    assert had == sorted(had)
    await pool.close()


async def test_without_a_free_session_the_answer_says_that_nothing_was_applied(
    own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.db.pool.WAIT_SECONDS", 0.5)
    pool = await open_pool(own_database, 1)
    async with pool.session():
        with pytest.raises(Refused) as refused:
            await pool.execute(
                "INSERT INTO consumers VALUES (gen_random_uuid(), '2125550142', NULL, now(), now())"
            )
    assert refused.value.code is Code.UNAVAILABLE
    assert status_of(refused.value) == 503
    assert refused.value.retry_after
    assert "nothing was applied" in refused.value.message
    row = await pool.fetchrow("SELECT count(*) AS consumers FROM consumers")
    assert row
    assert row["consumers"] == 0
    await pool.close()


async def test_a_released_session_goes_to_a_waiting_request(own_database: dict[str, Any]) -> None:
    pool = await open_pool(own_database, 1)
    async with pool.session():
        waiting = asyncio.create_task(pool.fetchrow("SELECT 7 AS seven"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    row = await waiting
    assert row
    assert row["seven"] == 7
    await pool.close()


async def test_a_lost_session_is_detected_and_replaced(own_database: dict[str, Any]) -> None:
    """The driver raises different errors, depending on when it notices the loss. The pool recognizes all of them."""
    pool = await open_pool(own_database, 1)
    owner = await asyncpg.connect(**own_database)
    try:
        for pause in (0, 0.001, 0.01, 0.1):
            async with pool.session() as connection:
                await owner.execute("SELECT pg_terminate_backend($1::integer)", connection.get_server_pid())
                await asyncio.sleep(pause)
                with pytest.raises(GONE):
                    await connection.fetchval("SELECT 1")
            assert await pool.fetchrow("SELECT 1")
    finally:
        await owner.close()
        await pool.close()


async def test_a_server_without_a_free_connection_is_answered_with_503_and_not_with_an_unexpected_error(
    own_database: dict[str, Any],
) -> None:
    pool = await open_pool(own_database, 2)
    owner = await asyncpg.connect(**own_database)
    try:
        async with pool.session() as first:
            # The limit does not count the owner, who is a superuser.
            await owner.execute(f"ALTER DATABASE {own_database['database']} CONNECTION LIMIT 1")
            assert await first.fetchval("SELECT 1")
            with pytest.raises(Refused, match="nothing was applied") as refused:
                await pool.fetchrow("SELECT 1")
            assert refused.value.code is Code.UNAVAILABLE
    finally:
        await owner.execute(f"ALTER DATABASE {own_database['database']} CONNECTION LIMIT -1")
        await owner.close()
        await pool.close()


async def test_a_database_that_acknowledges_before_it_is_durable_is_refused(
    own_database: dict[str, Any],
) -> None:
    owner = await asyncpg.connect(**own_database)
    await owner.execute(f"ALTER DATABASE {own_database['database']} SET synchronous_commit = off")
    await owner.close()
    connection = await asyncpg.connect(**own_database)
    with pytest.raises(UnsafeDatabase, match="Set synchronous_commit = on"):
        await migrate(connection, "sandbox")
    await connection.close()


@pytest.fixture(params=["fsync", "full_page_writes"])
def careless(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Start a second PostgreSQL with an unsafe setting, which no session can set. Return the setting and connect's arguments."""
    base = new_folder("cuota-test-")
    places = prepare(base / "data")
    lock = os.open(places.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    embedded_cluster.create(places, lock)
    embedded_cluster._write_access_rules(places)
    settings = [*embedded_cluster._settings(places), f"{request.param}=off"]
    command = [str(binaries_for(places.account) / "postgres"), "-D", str(places.pg)]
    for setting in settings:
        command += ["-c", setting]
    postgres = subprocess.Popen(command, stderr=subprocess.DEVNULL, **embedded_cluster._as(places.account))
    try:
        assert until(lambda: accepts(places), 60)
        yield request.param, {"host": str(places.socket), "port": PORT, "user": OWNER, "database": DATABASE}
    finally:
        postgres.terminate()
        postgres.wait(60)
        os.close(lock)
        shutil.rmtree(base)


async def test_a_server_that_may_lose_or_damage_writes_is_refused(
    careless: tuple[str, dict[str, Any]],
) -> None:
    setting, where = careless
    connection = await asyncpg.connect(**where)
    with pytest.raises(UnsafeDatabase, match=f"Set {setting} = on"):
        await migrate(connection, "sandbox")
    assert await connection.fetchval("SELECT to_regclass('migrations')") is None
    await connection.close()


async def test_a_session_keeps_all_prepared_statements_of_the_product_and_for_as_long_as_it_is_open(
    own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = await open_pool(own_database, 1)
    timers: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noted(delay: float, callback: Callable[..., object], *values: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__name__", "") == "_on_entry_expired":
            timers.append(delay)
        return call_later(delay, callback, *values)

    monkeypatch.setattr(loop, "call_later", noted)
    async with pool.session() as session:
        for number in range(300):
            assert await session.fetchval(f"SELECT $1::integer + {number}", 1) == 1 + number
        assert await session.fetchval("SELECT count(*) FROM pg_prepared_statements") >= 300
    assert timers == []
    await pool.close()
