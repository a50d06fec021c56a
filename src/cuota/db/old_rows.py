"""Statements that delete rows that have reached their age, as a background job."""

from __future__ import annotations


def deleting(table: str, key: str, old: str, *, of_merchant: bool = False) -> str:
    """Return the statement that deletes the old rows of a table. `key` is the table's primary key, `old` the condition.

    The statement leaves rows that another transaction has locked at this moment to the next run. It never waits, so no request and no
    erasure can wait for it in a circle. `of_merchant`: of the merchant $1 only, without `merchant_id` in `key`; on a Citus cluster, a
    statement can lock rows of one shard only.
    """
    mine = "merchant_id = $1 AND " if of_merchant else ""
    return f"""DELETE FROM {table} WHERE {mine}({key}) IN (
    SELECT {key} FROM {table} WHERE {mine}{old} FOR UPDATE SKIP LOCKED)"""
