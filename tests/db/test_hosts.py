"""One database on several hosts: the host that accepts writes is found without delay, and a silent host is abandoned."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
import uvloop

from cuota import config
from cuota.db import hosts, pool
from cuota.db.open_pool import open_pool
from cuota.db.pool import GONE, Pool


@pytest.fixture
def silent() -> Iterator[str]:
    """A host that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def over_tcp(where: dict[str, Any]) -> AsyncIterator[str]:
    """Forward a TCP port to the embedded server, which has only a Unix socket."""

    async def carried(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_unix_connection(f"{where['host']}/.s.PGSQL.{where['port']}")
        await asyncio.gather(_copied(reader, there[1]), _copied(there[0], writer))

    server = await asyncio.start_server(carried, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while said := await reader.read(65536):
            writer.write(said)
            await writer.drain()
    writer.close()


def _address(where: dict[str, Any], *others: str) -> str:
    """The database's address, behind these hosts."""
    there = f"{quote(where['host'], safe='')}:{where['port']}"
    who = quote(where["user"]) + (f":{quote(where['password'])}" if where.get("password") else "")
    return f"postgresql://{who}@{','.join([*others, there])}/{where['database']}"


def test_each_host_has_its_own_address_and_only_the_primary_is_accepted() -> None:
    assert hosts.split_hosts("postgresql://me:p%40ss@one:5433,two/cuota?sslmode=require") == [
        "postgresql://me:p%40ss@one:5433/cuota?sslmode=require&target_session_attrs=read-write",
        "postgresql://me:p%40ss@two/cuota?sslmode=require&target_session_attrs=read-write",
    ]
    assert hosts.split_hosts("postgresql://me@one/cuota") == ["postgresql://me@one/cuota"]


@pytest.mark.parametrize("text", ["postgresql://me@one:5433,two:5434/cuota", "postgresql://me@one,two/cuota?target_session_attrs=read-write"])  # fmt: skip
def test_a_setting_may_name_several_hosts(text: str, tmp_path: Any) -> None:
    given = {"CUOTA_DATABASE_URL": text, "CUOTA_DATA_DIR": str(tmp_path)}
    assert config.load(given).database_url == text


def test_a_setting_with_an_empty_second_host_is_refused(tmp_path: Any) -> None:
    given = {"CUOTA_DATABASE_URL": "postgresql://me@one:5433,two:port/cuota", "CUOTA_DATA_DIR": str(tmp_path)}
    with pytest.raises(config.BadSettings, match="must be a PostgreSQL address"):
        config.load(given)


async def test_a_silent_host_before_the_primary_does_not_delay_the_connection(
    own_database: dict[str, Any], silent: str
) -> None:
    opened = await open_pool({"dsn": _address(own_database, silent)}, 2)
    # A request waits at most half a second for a session.
    async with opened.session() as first, opened.session() as second:
        assert await first.fetchval("SELECT 1") == await second.fetchval("SELECT 1") == 1
    await opened.close()


async def test_a_host_that_accepts_no_writes_is_not_used(own_database: dict[str, Any]) -> None:
    owner = await asyncpg.connect(**own_database)
    await owner.execute(f"ALTER DATABASE {own_database['database']} SET default_transaction_read_only = on")
    await owner.close()
    with pytest.raises(GONE):
        await asyncio.wait_for(hosts.connect(_address(own_database, "127.0.0.1:1")), 60)


async def test_a_wrong_password_is_reported_whatever_the_other_hosts_do(own_database: dict[str, Any]) -> None:
    wrong = {**own_database, "user": "nobody_of_this_name", "password": "wrong"}
    with pytest.raises((asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidPasswordError)):
        await hosts.connect(_address(wrong, "127.0.0.1:1"))


async def test_the_kernel_closes_a_connection_to_a_vanished_host_within_seconds(
    own_database: dict[str, Any],
) -> None:
    """The test uses the service's event loop, because the loop creates the sockets."""

    async def options(address: str) -> list[int]:
        connection = await hosts.connect(address)
        line = connection._transport.get_extra_info("socket")
        names = ("TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        found = [line.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
        found.append(line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        connection.terminate()
        return found

    def on_uvloop(address: str) -> list[int]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(options(address))

    async with over_tcp(own_database) as port:
        who = quote(own_database["user"]) + (
            f":{quote(own_database['password'])}" if own_database.get("password") else ""
        )
        address = f"postgresql://{who}@{port}/{own_database['database']}?sslmode=disable"
        silence, idle, every, probes, kept = await asyncio.to_thread(on_uvloop, address)
    assert kept
    assert silence == 10_000
    assert idle + every * probes <= 10


async def read(opened: Pool) -> object:
    return await opened.fetchrow("SELECT 1")


async def append(opened: Pool) -> object:
    await opened.append("SELECT q FROM unnest($1::text[]) AS q", ["a row"])
    return True


@pytest.mark.parametrize("use", [read, append])
async def test_the_session_of_a_hanging_server_is_closed_and_replaced(
    own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch, use: Callable[[Pool], Awaitable[object]]
) -> None:
    opened = await open_pool(own_database, 1)
    row = await opened.fetchrow("SELECT pg_backend_pid() AS pid")
    assert row
    monkeypatch.setattr(pool, "HANGS_SECONDS", 1.0)
    os.kill(row["pid"], signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(GONE):
            await use(opened)
        assert time.monotonic() - began >= 1
        monkeypatch.undo()
        assert await use(opened)
    finally:
        os.kill(row["pid"], signal.SIGCONT)
        await opened.close()
