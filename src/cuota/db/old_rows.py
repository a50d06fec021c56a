"""The statements with which background jobs delete old rows."""

from __future__ import annotations


def deleting(table: str, key: str, old: str, *, of_merchant: bool = False) -> str:
    """Return the statement that deletes the old rows of a table. `key` is the table's primary key, `old` the condition.

    The statement leaves rows that another transaction has locked at this moment to the next run. It never waits, so it cannot
    deadlock with a request or an erasure. With `of_merchant`, it deletes only rows of the merchant $1, and `key` omits
    `merchant_id`: on a Citus cluster, a statement can lock rows of one shard only.
    """
    mine = "merchant_id = $1 AND " if of_merchant else ""
    return f"""DELETE FROM {table} WHERE {mine}({key}) IN (
    SELECT {key} FROM {table} WHERE {mine}{old} FOR UPDATE SKIP LOCKED)"""
