"""What stands behind the decisions, asked of the database itself: its keys refuse, and its commits are on disk."""

from __future__ import annotations

import time
from collections.abc import Callable

import asyncpg

from support.faults.books import Books

# A row that is there already must be refused by the key of its table.
KEYED = ("movements", "transfers", "events", "orders", "installments", "charges", "idempotency_keys")
_AGAIN = """DO $$ BEGIN
    INSERT INTO {table} SELECT * FROM {table} LIMIT 1;
    IF FOUND THEN RAISE EXCEPTION 'a row of {table} was taken twice'; END IF;
EXCEPTION WHEN unique_violation THEN NULL; END $$"""
_SYNCS_18 = "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
_SYNCS = "SELECT wal_sync FROM pg_stat_wal"
# The server's counters are told about once a second at the most.
_TOLD_SECONDS = 1.2


def keys(books: Books) -> list[str]:
    """Which tables take a row twice. Nothing of it stays."""
    found = []
    for table in KEYED:
        try:
            books.rows(_AGAIN.format(table=table))
        except asyncpg.RaiseError as problem:
            found.append(str(problem))
    return found


def syncs(books: Books, act: Callable[[], int]) -> tuple[int, int]:
    """How many operations one client had acknowledged one after the other, and how often WAL went to disk meanwhile."""
    sql = _SYNCS_18 if int(books.one("SHOW server_version_num")) >= 180000 else _SYNCS
    time.sleep(_TOLD_SECONDS)
    before = books.one(sql)
    done = act()
    time.sleep(_TOLD_SECONDS)
    return done, books.one(sql) - before
