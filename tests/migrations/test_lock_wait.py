"""A migration waits for a backup or another long transaction, and does not make the service wait for long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cuota import config
from cuota.commands.operate import _secured
from cuota.db import lock_wait
from cuota.db.pool import UnsafeDatabase
from cuota.run import runtime
from support.db.locks import Holder, holder
from support.db.migrating import ask, migrated_to

# This migration changes a table on which a backup has a lock.
BEFORE, NEXT = "0049_charged_back_refunds", "0050_settled_refund_events"
BACKUP = ("SET application_name = 'pg_dump'", "LOCK TABLE card_events IN ACCESS SHARE MODE")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_wait, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(lock_wait, "PAUSE_SECONDS", 0.01)


async def back_up(backup: Holder) -> None:
    """Hold the lock of a running backup."""
    for statement in BACKUP:
        await backup.run(statement)


async def test_a_migration_waits_for_a_backup_and_says_so(
    empty: dict[str, Any], settings: config.Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    await migrated_to(empty, BEFORE)
    said = ""
    async with holder(empty) as backup:
        await back_up(backup)
        migrating = asyncio.ensure_future(runtime.migrated(settings, empty))
        while not said:
            assert not migrating.done(), migrating
            await asyncio.sleep(0.01)
            said = capsys.readouterr().err
    assert NEXT in await migrating
    assert f"The migration {NEXT} waits for a lock that session" in said
    assert "(pg_dump, role cuota_owner, its statement began at" in said


async def test_a_migration_that_waited_too_long_names_the_session_and_says_what_to_do(
    empty: dict[str, Any], settings: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_wait, "PATIENCE_SECONDS", 0.0)
    await migrated_to(empty, BEFORE)
    async with holder(empty) as backup:
        await back_up(backup)
        ((pid,),) = await backup.run("SELECT pg_backend_pid()")
        with pytest.raises(UnsafeDatabase) as refused:
            await runtime.migrated(settings, empty)
    assert f"{NEXT} was not applied: it needs a lock that session {pid} (pg_dump" in str(refused.value)
    assert f"pg_terminate_backend({pid})" in str(refused.value)
    assert "CUOTA_DATABASE_URL" not in str(refused.value)
    assert await ask(empty, "SELECT max(name) FROM migrations") == BEFORE


async def test_the_table_can_be_used_while_the_migration_waits(
    empty: dict[str, Any], settings: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The migration stays in a pause, as it does for most of the time.
    monkeypatch.setattr(lock_wait, "PAUSE_SECONDS", 600.0)
    await migrated_to(empty, BEFORE)
    async with holder(empty) as backup:
        await back_up(backup)
        migrating = asyncio.ensure_future(runtime.migrated(settings, empty))
        await backup.until_waits(migrating)
        # This statement waits behind the migration, and runs as soon as the attempt has given up.
        assert await ask(empty, "SELECT count(*) FROM card_events") == 0
        assert not migrating.done()
        migrating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await migrating


async def test_row_level_security_waits_for_a_backup_and_says_so(
    own_database: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""
    async with holder(own_database) as backup:
        await back_up(backup)
        turning = asyncio.ensure_future(_secured(own_database, on=True))
        while not said:
            assert not turning.done(), turning
            await asyncio.sleep(0.01)
            said = capsys.readouterr().err
    assert "card_events" in await turning
    assert "Row-level security waits for a lock that session" in said
    assert "(pg_dump, role cuota_owner, its statement began at" in said


async def test_row_level_security_that_waited_too_long_names_the_session_and_changes_nothing(
    own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_wait, "PATIENCE_SECONDS", 0.0)
    async with holder(own_database) as backup:
        await back_up(backup)
        ((pid,),) = await backup.run("SELECT pg_backend_pid()")
        with pytest.raises(
            UnsafeDatabase, match=f"Row-level security was not applied: it needs a lock that session {pid} "
        ):
            await _secured(own_database, on=True)
    assert not await ask(own_database, "SELECT relrowsecurity FROM pg_class WHERE relname = 'orders'")


async def test_an_error_that_is_no_lock_does_not_blame_the_name_of_the_database(
    empty: dict[str, Any], settings: config.Settings
) -> None:
    await migrated_to(empty, BEFORE)
    await ask(
        empty, "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no space'; END$$"
    )
    await ask(empty, "CREATE TRIGGER refused BEFORE INSERT ON migrations EXECUTE FUNCTION refused()")
    with pytest.raises(UnsafeDatabase, match=r"no space\. Correct the cause and start the migration again"):
        await runtime.migrated(settings, empty)
