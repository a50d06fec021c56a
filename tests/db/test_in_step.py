"""With a synchronous standby, a commit that is only on the primary's disk is never acknowledged."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from cuota.db.embedded import cluster as embedded_cluster
from cuota.db.embedded.answer import accepts
from cuota.db.embedded.folders import DATABASE, OWNER, PORT, prepare
from cuota.db.embedded.programs import binaries_for
from cuota.db.open_pool import open_pool
from cuota.db.pool import GONE
from support.db.embedded_processes import until
from support.folders import new_folder

LOCAL = {"server_settings": {"synchronous_commit": "local"}}


@pytest.fixture
def alone() -> Iterator[dict[str, Any]]:
    """Yield the arguments of asyncpg.connect for a separate server."""
    base = new_folder("cuota-test-")
    places = prepare(base / "data")
    lock = os.open(places.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    embedded_cluster.create(places, lock)
    embedded_cluster._write_access_rules(places)
    command = [str(binaries_for(places.account) / "postgres"), "-D", str(places.pg)]
    for setting in embedded_cluster._settings(places):
        command += ["-c", setting]
    postgres = subprocess.Popen(command, stderr=subprocess.DEVNULL, **embedded_cluster._as(places.account))
    try:
        assert until(lambda: accepts(places), 60)
        yield {"host": str(places.socket), "port": PORT, "user": OWNER, "database": DATABASE}
    finally:
        postgres.terminate()
        postgres.wait(60)
        os.close(lock)
        shutil.rmtree(base)


@pytest.fixture
async def owner(alone: dict[str, Any]) -> Any:
    """Yield a session whose commits do not wait. Commits of all other sessions wait for a standby that does not
    exist."""
    connection = await asyncpg.connect(**alone, **LOCAL)
    await connection.execute("CREATE ROLE cuota_app NOLOGIN")
    await connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.execute("CREATE TABLE kept (n int); GRANT SELECT, INSERT ON kept TO cuota_app")
    yield connection
    await connection.close()


async def _waits(owner: asyncpg.Connection) -> int:
    """The process id of the session whose commit waits for the standby."""
    for _ in range(1200):
        found = await owner.fetchval("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        if found:
            return int(found)
        await asyncio.sleep(0.05)
    raise AssertionError("no commit waits for the standby")


async def test_a_commit_whose_wait_for_the_standby_was_cancelled_is_unknown_and_never_applied(
    alone: dict[str, Any], owner: asyncpg.Connection
) -> None:
    opened = await open_pool(alone, 1)
    saving = asyncio.create_task(opened.fetchrow("INSERT INTO kept VALUES (1) RETURNING n"))
    await owner.execute("SELECT pg_cancel_backend($1)", await _waits(owner))
    with pytest.raises(GONE):
        await saving
    # PostgreSQL reports success, and the row is visible. Only a warning says that the standby lacks it.
    assert await owner.fetchval("SELECT count(*) FROM kept") == 1
    reading = await opened.fetchrow("SELECT count(*) FROM kept")
    assert reading is not None
    await opened.close()


async def test_after_a_lost_commit_the_service_reads_again_only_when_the_standby_has_the_commit(
    alone: dict[str, Any], owner: asyncpg.Connection
) -> None:
    opened = await open_pool(alone, 1)
    confirming = asyncio.create_task(opened.in_step())
    await _waits(owner)
    assert not confirming.done()
    # A monitor does this when it abandons the standby.
    await owner.execute("ALTER SYSTEM RESET synchronous_standby_names")
    await owner.execute("SELECT pg_reload_conf()")
    await asyncio.wait_for(confirming, 60)
    await opened.close()


async def test_without_a_standby_no_commit_waits(own_database: dict[str, Any]) -> None:
    opened = await open_pool(own_database, 1)
    await asyncio.wait_for(opened.in_step(), 60)
    await opened.close()
