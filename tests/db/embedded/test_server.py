"""Several processes share one embedded PostgreSQL: they start it, stop it, and recover after kill -9 of each
process."""

import asyncio
import fcntl
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from cuota.db.embedded import cluster as embedded_cluster
from cuota.db.embedded.folders import prepare
from cuota.db.embedded.server import Embedded, open_embedded
from support.db.embedded_processes import (
    User,
    ask,
    data_folder,
    ended,
    lives,
    postmaster,
    supervisor,
    told,
    until,
    users,
)

# A supervisor that stops only after an hour without a user.
PATIENT = """
import sys
from cuota.db.embedded import supervisor
supervisor._IDLE_SECONDS = 3600.0
sys.exit(supervisor.main())
"""


@pytest.fixture
def data() -> Iterator[Path]:
    with data_folder() as folder:
        yield folder


@pytest.fixture
def user(data: Path) -> Iterator[Callable[[], User]]:
    with users(data) as start:
        yield start


async def keep(embedded: Embedded) -> None:
    await ask(embedded, "CREATE TABLE kept AS SELECT 42 AS number")


async def test_the_first_start_uses_safe_settings_and_a_second_process_shares_the_server(data: Path) -> None:
    with open_embedded(data) as first:
        for setting in ("fsync", "full_page_writes", "synchronous_commit", "data_checksums"):
            assert await ask(first, f"SHOW {setting}") == "on"
        assert await ask(first, "SHOW listen_addresses") == ""
        assert await ask(first, "SHOW TimeZone") == "UTC"
        assert await ask(first, "SELECT current_user || current_database()") == "cuota_ownercuota"
        for folder in (str(first.dsn_kwargs["host"]), data / "pg"):
            assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700  # noqa: PTH116
        one = postmaster(data)
        with open_embedded(data) as second:
            await keep(second)
        assert await ask(first, "SELECT number FROM kept") == 42
        assert postmaster(data) == one
    first.close()  # a second time does nothing


async def test_only_the_owner_role_is_let_in(data: Path) -> None:
    with open_embedded(data) as embedded:
        await ask(embedded, "CREATE ROLE another LOGIN")
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
            await asyncpg.connect(**{**embedded.dsn_kwargs, "user": "another"})


async def test_the_last_process_stops_the_server_and_the_next_start_finds_its_data(data: Path) -> None:
    one, two = open_embedded(data), open_embedded(data)
    await keep(one)
    one.close()
    await asyncio.sleep(3)
    assert await ask(two, "SELECT number FROM kept") == 42, "it is still in use"
    two.close()
    assert until(lambda: ended(data))
    assert "shut down" in (data / "postgres.log").read_text().splitlines()[-1]
    with open_embedded(data) as again:
        assert await ask(again, "SELECT number FROM kept") == 42


def test_processes_that_start_at_once_on_an_empty_folder_share_one_server(
    data: Path, user: Callable[[], User]
) -> None:
    assert len({told(process) for process in [user() for _ in range(5)]}) == 1
    log = (data / "postgres.log").read_text()
    assert log.count("supervisor started") == 1
    assert log.count("starting PostgreSQL") == 1


def test_a_killed_process_does_not_keep_the_server_running(data: Path, user: Callable[[], User]) -> None:
    process = user()
    assert lives(told(process))
    process.kill()
    assert until(lambda: ended(data))


async def test_a_killed_postmaster_is_restarted_with_all_committed_data(data: Path) -> None:
    with open_embedded(data) as embedded:
        await keep(embedded)
        old = postmaster(data)
        os.kill(old, signal.SIGKILL)
        assert until(lambda: postmaster(data) not in (0, old), 60)
        with open_embedded(data) as again:
            assert await ask(again, "SELECT number FROM kept") == 42
        log = (data / "postgres.log").read_text()
        assert "postgres ended by itself with code -9" in log
        assert log.count("supervisor started") == 1


async def test_postgres_ends_with_its_killed_supervisor_and_the_next_supervisor_starts_it_again(
    data: Path,
) -> None:
    with open_embedded(data) as embedded:
        await keep(embedded)
        old = postmaster(data)
        os.kill(supervisor(data), signal.SIGKILL)
        assert until(lambda: not lives(old))
        with open_embedded(data) as again:
            assert await ask(again, "SELECT number FROM kept") == 42
            assert lives(postmaster(data))


async def test_a_pid_file_with_a_reused_process_id_does_not_prevent_the_start(data: Path) -> None:
    with open_embedded(data):
        pass
    assert until(lambda: ended(data))
    note = data / "pg" / "postmaster.pid"
    note.write_text(f"{os.getpid()}\n{data / 'pg'}\n1\n5432\n\n\n\nready\n")
    shutil.chown(note, (data / "pg").stat().st_uid, (data / "pg").stat().st_gid)
    with open_embedded(data) as embedded:
        assert await ask(embedded, "SELECT 1") == 1


async def test_an_interrupted_creation_of_the_database_is_repeated(
    data: Path, user: Callable[[], User]
) -> None:
    process = user()
    assert until(lambda: (data / "pg.new" / "base").exists() and supervisor(data) > 0)
    process.kill()
    os.kill(supervisor(data), signal.SIGKILL)
    assert (data / "pg.new").exists()
    assert not (data / "pg").exists()
    (data / "pg.new" / "left").write_text("")
    with open_embedded(data) as embedded:
        assert await ask(embedded, "SELECT 1") == 1
    assert not (data / "pg.new").exists()
    assert not (data / "pg" / "left").exists()


def test_a_process_that_arrives_during_the_stop_waits_and_starts_the_server_again(
    data: Path, user: Callable[[], User]
) -> None:
    prepare(data)
    with (data / "users.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = user()
        time.sleep(0.7)
        assert not (data / "supervisor.lock").exists()
    assert told(process) > 0


async def test_a_process_that_opens_the_database_during_its_stop_always_gets_a_database(data: Path) -> None:
    chance = random.Random(8)
    for _ in range(10):
        with open_embedded(data) as embedded:
            assert await ask(embedded, "SELECT 1") == 1
            pid = supervisor(data)
        os.kill(
            pid, signal.SIGTERM
        )  # the supervisor then stops at its next check, within a quarter of a second
        await asyncio.sleep(chance.uniform(0.0, 0.35))


async def test_after_sigterm_the_supervisor_waits_for_its_processes_and_then_stops_at_once(
    data: Path,
) -> None:
    prepare(data)
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", PATIENT, str(data)], check=True, stdout=subprocess.DEVNULL
    )
    assert until(lambda: supervisor(data) > 0)
    patient = supervisor(data)
    try:
        with open_embedded(data) as embedded:
            os.kill(patient, signal.SIGTERM)
            await asyncio.sleep(0.7)
            assert await ask(embedded, "SELECT 1") == 1
            assert supervisor(data) == patient
        # Without the signal, the supervisor would run for an hour.
        assert until(lambda: ended(data))
    finally:
        if lives(patient):
            os.kill(patient, signal.SIGKILL)


async def test_a_postmaster_without_a_supervisor_is_stopped_by_the_next_supervisor(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_embedded(data) as embedded:
        await keep(embedded)
    assert until(lambda: ended(data))
    # Simulate a system on which PostgreSQL gets no signal when its supervisor dies.
    monkeypatch.setattr(embedded_cluster, "_dies_with_us", lambda number: None)
    orphan = embedded_cluster.start(prepare(data))
    assert until(lambda: prepare(data).postmaster() == (orphan.pid, "ready"))
    with open_embedded(data) as embedded:
        assert orphan.wait(60) == 0
        assert postmaster(data) not in (0, orphan.pid)
        assert await ask(embedded, "SELECT number FROM kept") == 42
