"""`cuota migrate --citus`: clear refusals, rows that move to the shards, and migrations on a distributed schema."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from cuota.core.order.movement import MovementKind
from cuota.db import citus, workers
from cuota.db.citus import distribute
from cuota.db.locks import JOBS_LOCK
from cuota.db.migrate import files, migrate
from cuota.db.order import outcomes
from cuota.db.pool import SESSION, UnsafeDatabase
from support.db.cluster import REGISTERED, at_worker
from support.db.made_orders import approved, created, moved, read_again

LEFT = "SELECT logicalrelid::text AS name FROM pg_dist_partition WHERE pg_relation_size(logicalrelid) > 0"


def refused(url: str, folder: Path) -> str:
    """Return the one line that the command prints when it refuses."""
    command = [sys.executable, "-m", "cuota", "migrate", "--citus", "--database", url]
    environment = {**os.environ, "CUOTA_DATA_DIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("cuota: ")]
    assert "Traceback" not in done.stderr
    return line


async def filled(session: asyncpg.Connection, orders: int) -> None:
    """Make merchants, each with an approved and captured order."""
    for _ in range(orders):
        new = created(uuid4())
        assert await outcomes.create(session, new)
        outcome = approved(new.order)
        assert await outcomes.save(session, outcome)
        assert await outcomes.save(session, moved(read_again(outcome), MovementKind.CAPTURE, "r", 100))


async def test_a_cluster_that_cannot_be_used_is_refused_in_one_line(blank_citus: str, tmp_path: Path) -> None:
    session = await asyncpg.connect(blank_citus)
    [first, *_] = await session.fetch(REGISTERED)
    said = refused(at_worker(blank_citus, first["host"], first["port"]), tmp_path)
    assert "worker of a Citus cluster" in said
    assert str(session._addr[1]) in said
    # Simulate a node that is down: no process listens on port 1.
    await session.execute("UPDATE pg_dist_node SET nodeport = 1 WHERE nodeport = $1", first["port"])
    assert f"cannot connect to {first['host']}:1. Nothing was changed" in refused(blank_citus, tmp_path)
    await session.execute("UPDATE pg_dist_node SET shouldhaveshards = false")
    assert "has no worker" in refused(blank_citus, tmp_path)
    assert await session.fetchval("SELECT to_regclass('orders')") is None
    await session.execute("DROP EXTENSION citus")
    assert "does not have Citus" in refused(blank_citus, tmp_path)
    await session.close()


async def test_all_rows_move_to_the_shards_and_none_stays_on_the_coordinator(blank_citus: str) -> None:
    session = await asyncpg.connect(blank_citus)
    await migrate(session, "sandbox")
    await filled(session, 6)
    tables = [table for table, _ in citus.statements()]
    before = {table: await session.fetchval(f"SELECT count(*) FROM {table}") for table in tables}
    assert sum(count > 0 for count in before.values()) > 6
    await distribute(session)
    after = {table: await session.fetchval(f"SELECT count(*) FROM {table}") for table in tables}
    assert after == before
    assert [row["name"] for row in await session.fetch(LEFT)] == []
    # Triggers and CHECKs still refuse wrong changes, on the shards and on the coordinator.
    for sql in (
        "UPDATE transfers SET amount = 1",
        "TRUNCATE transfers",
        "UPDATE installments SET amount = 1",
    ):
        with pytest.raises(asyncpg.PostgresError, match=r"append-only|plan of order"):
            await session.execute(sql)
    assert await distribute(session) == []
    await session.close()


async def test_tables_are_not_distributed_while_the_service_runs(blank_citus: str) -> None:
    session, service = await asyncpg.connect(blank_citus), await asyncpg.connect(blank_citus)
    await migrate(session, "sandbox")
    await service.execute("SELECT pg_advisory_lock(12345)")
    assert await workers.count_alive(session) == 1
    with pytest.raises(UnsafeDatabase, match="The service is running"):
        await distribute(session)
    assert await session.fetchval("SELECT count(*) FROM pg_dist_partition") == 0
    await service.close()
    await session.execute("SELECT pg_advisory_lock($1)", JOBS_LOCK)
    assert "orders" in await distribute(session)
    await session.close()


# One statement of each kind that the migrations use. docs/scaling.md says how to write those that Citus refuses.
LATER = """
-- Several statements; a semicolon in a comment; and in 'text'.
ALTER TABLE orders ADD COLUMN later text DEFAULT 'a;b';
ALTER TABLE orders ADD CONSTRAINT later_there CHECK (later <> '');
ALTER TABLE orders ADD COLUMN later_named smallint NOT NULL DEFAULT 0 CONSTRAINT later_named CHECK (later_named >= 0);
ALTER TABLE merchants ADD COLUMN later boolean;
ALTER TABLE codes_sent ADD COLUMN later integer CHECK (later > 0);
ALTER TABLE messages DROP CONSTRAINT messages_kind_check;
ALTER TABLE messages ADD CONSTRAINT messages_kind_check CHECK (kind <> '');
CREATE TABLE later (merchant_id uuid NOT NULL, id integer NOT NULL, PRIMARY KEY (merchant_id, id));
GRANT SELECT, INSERT, UPDATE (id) ON later TO cuota_app;
CREATE SCHEMA later_simulator;
CREATE TABLE later_simulator.rows (id uuid PRIMARY KEY);
GRANT USAGE ON SCHEMA later_simulator TO cuota_app;
CREATE INDEX orders_later ON orders (merchant_id, later) INCLUDE (amount) WHERE later IS NOT NULL;
CREATE UNIQUE INDEX later_event ON later (merchant_id, id);
DROP INDEX orders_due;
INSERT INTO feeds (merchant_id, last_position) SELECT merchant_id, 0 FROM orders ON CONFLICT DO NOTHING;
UPDATE installments i SET charge_at = i.due_on::timestamp AT TIME ZONE p.time_zone
    FROM plans p WHERE p.merchant_id = i.merchant_id AND p.order_id = i.order_id;
CREATE OR REPLACE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
UPDATE events SET message = 'later';
CREATE OR REPLACE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE FUNCTION later_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEW;  -- not the end; of anything
END $$;
CREATE TRIGGER later_row BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION later_row();
DO $body$ BEGIN
    PERFORM 1;
END $body$;
REVOKE ALL ON FUNCTION later_row FROM PUBLIC;
"""


async def test_each_kind_of_later_migration_runs_on_distributed_tables(
    blank_citus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await asyncpg.connect(blank_citus)
    await migrate(session, "sandbox")
    await filled(session, 2)
    await distribute(session)
    shipped = files()
    monkeypatch.setattr("cuota.db.migrate.files", lambda: [*shipped, ("9999_later", LATER)])
    assert await migrate(session, "sandbox") == ["9999_later"]
    monkeypatch.setattr(citus, "_BY_MERCHANT", (*citus._BY_MERCHANT, "later"))
    assert await distribute(session) == ["later"]
    # A merchant's calls still work on the changed shards.
    await filled(session, 1)
    rows = await session.fetch("SELECT later FROM orders")
    assert {row["later"] for row in rows} == {"a;b"}
    assert await session.fetchval("SELECT count(*) FROM events WHERE message = 'later'") == 6
    with pytest.raises(asyncpg.PostgresError, match="append"):
        await session.execute("UPDATE events SET message = 'changed'")
    await session.close()


async def test_the_migrations_after_the_first_distributed_release_run_on_distributed_tables(
    blank_citus: str,
) -> None:
    """A cluster that an earlier release distributed is upgraded."""
    session = await asyncpg.connect(blank_citus)
    shipped = files()
    early = [name for name, _ in shipped].index("0017_save_orders") + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cuota.db.migrate.files", lambda: shipped[:early])
        await migrate(session, "sandbox")
    there = {
        row[0] for row in await session.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    }
    # In that release, the table of the consumers' exposure was on every node.
    exposure = "consumer_exposure"
    earlier = [(exposure, f"SELECT create_reference_table('{exposure}')")]
    earlier += [(name, sql) for name, sql in citus.statements() if name in there and name != exposure]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(citus, "statements", lambda: earlier)
        await distribute(session)
    assert await migrate(session, "sandbox") == [name for name, _ in shipped[early:]]
    await distribute(session)
    await filled(session, 1)
    await session.close()


async def test_a_call_waits_for_a_locked_row_on_a_node_no_longer_than_on_plain_postgresql(citus: str) -> None:
    parts = urlsplit(citus)
    app = parts._replace(netloc=f"cuota_app@{parts.netloc.rpartition('@')[2]}").geturl()
    holder, caller = await asyncpg.connect(citus), await asyncpg.connect(app)
    new = created(uuid4())
    assert await outcomes.create(holder, new)
    ids = (new.order.merchant_id, new.order.order_id)
    for name, value in SESSION.items():
        await caller.fetchval("SELECT set_config($1, $2, false)", name, value)
    lock = "SELECT 1 FROM orders WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE"
    async with holder.transaction():
        await holder.fetch(lock, *ids)
        # Without the role's own setting on the node, the call ends by statement_timeout: QueryCanceledError.
        with pytest.raises(asyncpg.LockNotAvailableError):
            await caller.fetch(lock, *ids)
    assert len(await caller.fetch(lock, *ids)) == 1
    await caller.close()
    await holder.close()


async def test_a_migration_does_not_wait_long_for_a_transaction_that_began_on_a_worker(
    citus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await asyncpg.connect(citus)
    [first, *_] = await session.fetch(REGISTERED)
    reader = await asyncpg.connect(at_worker(citus, first["host"], first["port"]))
    shipped = files()
    later = ("9999_later", "ALTER TABLE card_events ADD COLUMN later boolean")
    monkeypatch.setattr("cuota.db.migrate.files", lambda: [*shipped, later])
    # Without the limit on the node, this ends the statement, and the error is another one.
    await session.execute("SET statement_timeout = '60s'")
    async with reader.transaction():
        await reader.fetch("SELECT 1 FROM card_events")
        with pytest.raises(UnsafeDatabase, match="9999_later was not applied: it needs a lock"):
            await migrate(session, "sandbox")
        # The attempt has released its own locks, so the table can be used through the coordinator.
        assert await session.fetchval("SELECT count(*) FROM card_events") == 0
    assert await migrate(session, "sandbox") == ["9999_later"]
    await reader.close()
    await session.close()
