"""`python -m bench.partitions`: compares one table of messages with the same rows in monthly partitions.

Messages stay for 25 months (docs/retention.md), so a partitioned table has 27 partitions: those, the current month and the next. A
statement that does not name the month of its row looks into all of them. The benchmark times a lookup by key and the search for due
messages on both tables in turn, and the deletion of a month, on an embedded PostgreSQL with a temporary data folder. It prints a
table and takes about a minute. The decision: docs/decisions/old-rows.md.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg

from cuota.db.embedded.server import open_embedded
from cuota.db.pool import SESSION

MONTHS, ROWS, CALLS, ROUNDS = 27, 400_000, 1_000, 5
_COLUMNS = "merchant_id uuid, order_id uuid, message_id uuid, try_at timestamptz, settled_at timestamptz, at timestamptz, said bytea"
_MADE = f"""INSERT INTO one SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
    CASE WHEN n <= 5 THEN now() END, now(), timestamptz '2026-01-01' + interval '{MONTHS} months' * (n - 1) / {ROWS},
    decode(repeat('00', 120), 'hex') FROM generate_series(1, {ROWS}) n"""
_LOOKUP = "SELECT said FROM {} WHERE merchant_id = $1 AND order_id = $2 AND message_id = $3"
_DUE = "SELECT message_id FROM {} WHERE try_at <= $1 ORDER BY try_at LIMIT 8"
_DELETE = "DELETE FROM one WHERE at < timestamptz '2026-02-01'"
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


async def prepared(connection: asyncpg.Connection) -> None:
    """Make the two tables with the same rows, and with the indexes of the product's table."""
    await connection.execute(
        f"CREATE TABLE one ({_COLUMNS}, PRIMARY KEY (merchant_id, order_id, message_id))"
    )
    # Every unique key of a partitioned table contains the column that selects the partition.
    await connection.execute(
        f"CREATE TABLE parts ({_COLUMNS}, PRIMARY KEY (merchant_id, order_id, message_id, at)) PARTITION BY RANGE (at)"
    )
    for month in range(MONTHS):
        first, end = (date(2026 + n // 12, n % 12 + 1, 1) for n in (month, month + 1))
        await connection.execute(
            f"CREATE TABLE part_{month} PARTITION OF parts FOR VALUES FROM ('{first}') TO ('{end}')"
        )
    await connection.execute(_MADE)
    await connection.execute("INSERT INTO parts SELECT * FROM one")
    for name in ("one", "parts"):
        await connection.execute(f"CREATE INDEX ON {name} (try_at, merchant_id) WHERE try_at IS NOT NULL")
    await connection.execute("VACUUM ANALYZE")
    for setting, value in SESSION.items():
        await connection.fetchval("SELECT set_config($1, $2, false)", setting, value)


async def timed(connection: asyncpg.Connection, sql: str, *values: object) -> float:
    """Return the mean milliseconds of one call."""
    statement = await connection.prepare(sql)
    began = time.perf_counter()
    for _ in range(CALLS):
        await statement.fetch(*values)
    return (time.perf_counter() - began) / CALLS * 1000


async def compare(where: dict[str, Any]) -> None:
    connection = await asyncpg.connect(**where)
    await prepared(connection)
    key = await connection.fetchrow("SELECT merchant_id, order_id, message_id, now() FROM one LIMIT 1")
    print(
        f"{ROWS:,} messages, {MONTHS} monthly partitions, {CALLS:,} calls, median of {ROUNDS} rounds in turn"
    )
    for title, sql, values in (("lookup by key", _LOOKUP, key[:3]), ("due messages", _DUE, key[3:])):
        rounds = [
            [await timed(connection, sql.format(name), *values) for name in ("one", "parts")]
            for _ in range(ROUNDS)
        ]
        one, parts = (median(each) for each in zip(*rounds, strict=True))
        print(f"{title}: one table {one:.3f} ms, partitions {parts:.3f} ms")
    for title, sql in (("delete the rows of a month", _DELETE), ("drop its partition", "DROP TABLE part_0")):
        await connection.execute("CHECKPOINT")
        wal, began = int(await connection.fetchval(_WAL)), time.perf_counter()
        await connection.execute(sql)
        took = time.perf_counter() - began
        written = int(await connection.fetchval(_WAL)) - wal
        print(f"{title}: {took * 1000:.0f} ms, {written / 1e6:.1f} MB of WAL")
    await connection.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cuota-bench-") as name:
        Path(name).chmod(0o711)
        with open_embedded(Path(name) / "data") as embedded:
            asyncio.run(compare(dict(embedded.dsn_kwargs)))


if __name__ == "__main__":
    main()
