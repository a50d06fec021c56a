"""The statements with which background jobs delete old rows."""

from __future__ import annotations

# A statement deletes at most this many rows of a merchant, so that it ends in time even after the job has not run for days.
AT_ONCE = 1000


def deleting(table: str, key: str, old: str) -> str:
    """Return the statement that deletes the old rows of a table. `key` is the table's primary key, `old` the condition.

    The statement leaves rows that another transaction has locked at this moment to the next run. It never waits, so it cannot
    deadlock with a request or an erasure.
    """
    return f"""DELETE FROM {table} WHERE ({key}) IN (
    SELECT {key} FROM {table} WHERE {old} FOR UPDATE SKIP LOCKED)"""


def deleting_some(table: str, key: str, old: str) -> str:
    """Return the statement that deletes AT_ONCE old rows of the merchant $1 in the same way. `key` omits `merchant_id`.

    On a Citus cluster, a statement can lock rows of one shard only.
    """
    return f"""WITH old AS MATERIALIZED (
    SELECT {key} FROM {table} WHERE merchant_id = $1 AND {old} LIMIT {AT_ONCE} FOR UPDATE SKIP LOCKED
)
DELETE FROM {table} WHERE merchant_id = $1 AND ({key}) IN (SELECT {key} FROM old) RETURNING 1"""
