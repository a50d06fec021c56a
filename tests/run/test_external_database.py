"""Backup and restore with an external database, named by CUOTA_DATABASE_URL."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from cuota.db.backup.programs import programs_for
from support.makers import complete
from support.own_service import Own


def url_of(where: dict[str, Any]) -> str:
    """Return the database's URL, as an operator writes it."""
    return f"postgresql://{where['user']}@/{where['database']}?host={quote(str(where['host']), safe='')}"


async def cuota(own: Own, where: dict[str, Any], *arguments: str) -> tuple[int, str]:
    """The command on another database, with this service's secret key."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")}
    key = base64.b64encode(own.context.settings.secret_key).decode()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cuota", *arguments,
        env={**clean, "CUOTA_DATABASE_URL": url_of(where), "CUOTA_SECRET_KEY": key},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_a_backup_under_load_is_restored_into_an_empty_database(
    own: Own, empty: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "own.cuota"
    order = await own.merchant.approved("1000.00")
    acknowledged, done = 10, asyncio.Event()

    async def go_on() -> None:
        nonlocal acknowledged
        while not done.is_set():
            acknowledged += (await own.merchant.move(order, "capture", "0.01")).status_code == 200

    for _ in range(10):
        assert (await own.merchant.move(order, "capture", "0.01")).status_code == 200
    load = asyncio.create_task(go_on())
    before = acknowledged
    code, said = await cuota(own, own.where, "backup", str(file))
    after = acknowledged
    done.set()
    await load
    assert (code, after > before) == (0, True), said
    assert "does not contain the secret key" in said
    code, said = await cuota(own, empty, "restore", str(file))
    assert code == 0, said
    assert "0 disagree with the ledger" in said
    connection = await asyncpg.connect(**empty)
    captured = await connection.fetchval("SELECT captured FROM orders WHERE order_id = $1", order["orderId"])
    await connection.execute("SET ROLE cuota_app")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("UPDATE transfers SET amount = amount + 1")
    await connection.close()
    assert before <= captured <= after + 1
    code, said = await cuota(own, empty, "restore", str(file))
    assert code == 1
    assert "The database already contains tables" in said
    assert (await cuota(own, empty, "verify"))[0] == 0


async def test_a_database_with_another_program_s_tables_is_not_changed(
    own: Own, empty: dict[str, Any], tmp_path: Path
) -> None:
    await complete(own.service, own.merchant.merchant_id, await own.merchant.create())
    file = tmp_path / "own.cuota"
    assert (await cuota(own, own.where, "backup", str(file)))[0] == 0
    connection = await asyncpg.connect(**empty)
    await connection.execute("CREATE TABLE notes (text text)")
    code, said = await cuota(own, empty, "restore", str(file))
    assert code == 1
    assert "The database already contains tables" in said
    names = await connection.fetchval(
        "SELECT array_agg(c.relname::text) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace"
    )
    await connection.close()
    assert names == ["notes"]


def test_a_password_is_never_on_a_command_line() -> None:
    found = programs_for({"dsn": "postgresql://cuota:s%40cret@db1:5432,db2/cuota?sslmode=require"}, 15)
    line = " ".join(found.command("pg_dump", f"--dbname={found.address}"))
    assert "cret" not in line
    assert found.address == "postgresql://cuota@db1:5432,db2/cuota?sslmode=require"
    assert found.environment["PGPASSWORD"] == "s@cret"
    assert found.environment["PGTARGETSESSIONATTRS"] == "read-write"
