"""The sandbox's clock in the database: reading and moving it, and finding the work that is due next."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from cuota.core.plan.charge import NEVER_SENT
from cuota.db import hosts, service_role
from cuota.db.pool import Connection
from cuota.db.row_security import EVERYONE, SETTING
from cuota.db.session import Session

# The process that moves the clock renews this lease every few seconds. If it is killed, the service continues after this time.
LEASE = timedelta(seconds=10)

# All scheduled work is a row in one of these tables, due at the instant in the column: (table, column, condition).
WAITING = (
    ("orders", "due_at", "true"),
    ("card_refunds", "try_at", "true"),
    ("deliveries", "try_at", "state = 'pending'"),
    ("messages", "try_at", "true"),
    ("virtual_cards", "tell_at", "issued_at IS NOT NULL"),
    ("issuing_simulator.clearings", "try_at", "true"),
    ("card_events", "try_at", "true"),
    ("settlements", "close_at", "true"),
    ("payouts", "try_at", "true"),
    ("disputes", "due_at", "true"),
    ("dispute_evidence", "send_at", "true"),
    # When an overdue installment is written off: $2 days after its day, at noon UTC (core/order/write_off.py).
    (
        "installments",
        "((due_on + $2::integer + time '12:00') AT TIME ZONE 'UTC')",
        "failures > 0 AND charge_id IS NULL AND written_off_at IS NULL AND amount + fee > 0",
    ),
)
# Fetching the events of card processors is always due again, so it is not shown to the operator. Neither is the end of
# a pause of payouts.
_STOPS = (*WAITING, ("card_rails", "due_at", "true"), ("settlements", "resume_at", "true"))

_NOW = "CASE WHEN moving_until > clock_timestamp() AND held_at IS NOT NULL THEN held_at ELSE clock_timestamp() + ahead END"
_READ = f"""SELECT ahead, held_at, coalesce(moving_until > clock_timestamp(), false) AS moving, closed,
    {_NOW} AS now, clock_timestamp() AS real FROM sandbox_clock"""
_BEGIN = (
    "UPDATE sandbox_clock SET moving_until = clock_timestamp() + $1::interval, held_at = NULL, closed = $2"
)
# The process that moves the clock may stand still for longer than its lease (Ctrl-Z). Then the clock has run on, and may not go back.
_RAN_ON = "held_at IS NOT NULL AND moving_until <= clock_timestamp()"
_EXTEND = f"""UPDATE sandbox_clock SET moving_until = clock_timestamp() + $1::interval,
    held_at = CASE WHEN {_RAN_ON} THEN clock_timestamp() + ahead ELSE held_at END"""
_HOLD = f"""
WITH instant AS (SELECT greatest($2::timestamptz, {_NOW}) AS at FROM sandbox_clock)
UPDATE sandbox_clock SET held_at = at, ahead = at - clock_timestamp(), moving_until = clock_timestamp() + $1::interval
FROM instant RETURNING held_at
"""
_SET = "UPDATE sandbox_clock SET held_at = $1, ahead = $1 - clock_timestamp()"
_HAS_ORDERS = "SELECT EXISTS (SELECT FROM orders) AS found"
# The card processors have reported nothing yet, so their events are fetched from the new beginning.
_RAILS_AT = "UPDATE card_rails SET reconciled_until = $1, due_at = $1, newest_event_at = NULL"
# PostgreSQL shows the upper and the lower half of a lock's number.
_SHARING = """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) + objid::bigint = $1"""
_END = f"""UPDATE sandbox_clock SET moving_until = NULL, closed = false, held_at = NULL,
    ahead = CASE WHEN held_at IS NULL OR {_RAN_ON} THEN ahead ELSE held_at - clock_timestamp() END"""
_NEXT = "SELECT min(at) AS at FROM ({}) soonest".format(
    " UNION ALL ".join(
        f"SELECT min({column}) AS at FROM {table} WHERE {which} AND {column} > $1"
        for table, column, which in _STOPS
    )
)
_DUE = "SELECT sum(rows) AS rows FROM ({}) counts".format(
    " UNION ALL ".join(
        [
            *(
                f"SELECT count(*) AS rows FROM {table} WHERE {which} AND {column} <= $1"
                for table, column, which in _STOPS
            ),
            "SELECT count(*) AS rows FROM outbox",
            # Movements whose settlement lines are not written yet: their batch may close before the next instant.
            """SELECT count(*) AS rows FROM feeds f LEFT JOIN settlements s ON s.merchant_id = f.merchant_id
                WHERE f.last_position > coalesce(s.position, 0)""",
        ]
    )
)
_PAID = f"""
SELECT 'payment ' || CASE state WHEN 'succeeded' THEN 'received' ELSE 'failed' END AS what, count(*) AS rows
    FROM charges WHERE settled_at = $1 AND origin <> 'checkout' AND reason IS DISTINCT FROM '{NEVER_SENT}' GROUP BY state
UNION ALL SELECT 'refund to a card ' || state, count(*) FROM card_refunds WHERE settled_at = $1 GROUP BY state
UNION ALL SELECT 'message ' || replace(kind, '_', ' '), count(*) FROM messages WHERE settled_at = $1 GROUP BY kind
UNION ALL SELECT 'payout created', count(*) FROM payouts WHERE closed_at = $1 GROUP BY status
"""
_NEXT_IN = "SELECT {column} AS at, count(*) AS rows FROM {table} WHERE {which} AND {column} > $1 GROUP BY {column} ORDER BY {column} LIMIT 1"


_SETTINGS = {"timezone": "UTC", "application_name": "cuota clock", SETTING: EVERYONE}


@dataclass(frozen=True, slots=True)
class Reading:
    """The clock at the time of one read. `now` is the service's time, `real` the database's; `closed` means that requests must wait."""

    ahead: timedelta
    held_at: datetime | None
    moving: bool
    closed: bool
    now: datetime
    real: datetime


@dataclass(frozen=True, slots=True)
class Next:
    """The next work in one table: its instant, and the number of rows that are due at exactly that instant."""

    table: str
    at: datetime
    rows: int


async def connect(where: dict[str, Any]) -> Connection:
    """Open a separate connection with the service's role. Its advisory locks last as long as the connection."""
    connection, _ = await service_role.connect(where, timeout=5, server_settings=_SETTINGS)
    return connection


async def read(session: Session) -> Reading:
    """Read the clock."""
    row = await session.fetchrow(_READ)
    assert row is not None
    return Reading(row["ahead"], row["held_at"], row["moving"], row["closed"], row["now"], row["real"])


async def begin(session: Session, *, closed: bool) -> None:
    """Announce that the clock will be moved. The clock continues to run until `hold`."""
    await session.fetchrow(_BEGIN, LEASE, closed)


async def extend(session: Session) -> None:
    """Renew the lease."""
    await session.fetchrow(_EXTEND, LEASE)


async def hold(session: Session, at: datetime) -> datetime:
    """Stop the clock at an instant and return it. If the clock already shows a later instant, stop it there."""
    row = await session.fetchrow(_HOLD, LEASE, at)
    assert row is not None
    held_at: datetime = row["held_at"]
    return held_at


async def set_to(session: Session, at: datetime) -> None:
    """Stop the clock at any instant, even an earlier one, for a rewind."""
    await session.fetchrow(_SET, at)


async def has_orders(session: Session) -> bool:
    """Return whether any merchant has an order."""
    row = await session.fetchrow(_HAS_ORDERS)
    assert row is not None
    return bool(row["found"])


async def begin_at(session: Session, at: datetime) -> None:
    """Stop the clock at an instant before the sandbox's first order."""
    await set_to(session, at)
    await session.fetchrow(_RAILS_AT, at)


async def end(session: Session) -> None:
    """Let the clock run again from the instant that it shows."""
    await session.fetchrow(_END)


async def next_due(session: Session, after: datetime, write_off_days: int) -> datetime | None:
    """Return the earliest instant after `after` at which work is due, or None."""
    row = await session.fetchrow(_NEXT, after, write_off_days)
    return None if row is None else row["at"]


async def count_due(session: Session, at: datetime, write_off_days: int) -> int:
    """Return the number of rows that are due at an instant or earlier. Work that cannot be done stays due."""
    row = await session.fetchrow(_DUE, at, write_off_days)
    return 0 if row is None else int(row["rows"])


async def next_of_each(session: Session, after: datetime, write_off_days: int) -> list[Next]:
    """Return the next work of each table, earliest first. Tables without scheduled work are left out."""
    found = []
    for table, column, which in WAITING:
        sql = _NEXT_IN.format(table=table, column=column, which=which)
        row = await session.fetchrow(sql, after, *([write_off_days] if "$2" in sql else []))
        if row is not None:
            found.append(Next(table, row["at"], row["rows"]))
    return sorted(found, key=lambda item: item.at)


async def try_lock(connection: Connection, lock: int, *, shared: bool = False) -> bool:
    """Take an advisory lock for this session, if it is free."""
    function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    taken: bool = await connection.fetchval(f"SELECT {function}($1)", lock)
    return taken


async def sharing(connection: Connection, lock: int) -> int:
    """Return how many sessions share an advisory lock."""
    count: int = await connection.fetchval(_SHARING, lock)
    return count


async def unlock(connection: Connection, lock: int) -> None:
    """Release an advisory lock. Does nothing if this session does not hold it."""
    await connection.fetchval("SELECT pg_advisory_unlock($1)", lock)


@contextlib.asynccontextmanager
async def connected(where: dict[str, Any], *, owner: bool = False) -> AsyncIterator[Connection]:
    """Open a connection like `connect`. Close it at the end of the block, which releases its locks.

    With `owner`, connect as the user in `where`, who owns the tables.
    """
    if owner:
        connection = await hosts.connect(**where, timeout=5, server_settings=_SETTINGS)
    else:
        connection = await connect(where)
    try:
        yield connection
    finally:
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await connection.close(timeout=5)


async def done_at(session: Session, at: datetime) -> dict[str, int]:
    """Return counts by description: the payments, messages and payouts made while the clock stood still at an instant."""
    return {row["what"]: row["rows"] for row in await session.fetch(_PAID, at)}
