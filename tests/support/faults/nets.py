"""Checks the protection in the database itself: its unique keys refuse duplicates, and its commits are on disk."""

from __future__ import annotations

import time
from collections.abc import Callable

import asyncpg

from support.faults.books import Books

# Each table's key must refuse a copy of an existing row.
KEYED = ("movements", "transfers", "events", "orders", "installments", "charges", "idempotency_keys")
_AGAIN = """DO $$ BEGIN
    INSERT INTO {table} SELECT * FROM {table} LIMIT 1;
    IF FOUND THEN RAISE EXCEPTION 'a row of {table} was taken twice'; END IF;
EXCEPTION WHEN unique_violation THEN NULL; END $$"""
_SYNCS_18 = "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
_SYNCS = "SELECT wal_sync FROM pg_stat_wal"
# The server updates its counters about once a second.
_TOLD_SECONDS = 1.2


def keys(books: Books) -> list[str]:
    """Return the tables that accept a row twice. The inserted rows are rolled back."""
    found = []
    for table in KEYED:
        try:
            books.rows(_AGAIN.format(table=table))
        except asyncpg.RaiseError as problem:
            found.append(str(problem))
    return found


def syncs(books: Books, act: Callable[[], int]) -> tuple[int, int]:
    """Return how many operations of one client were acknowledged one after the other, and how many WAL syncs that took."""
    sql = _SYNCS_18 if int(books.one("SHOW server_version_num")) >= 180000 else _SYNCS
    time.sleep(_TOLD_SECONDS)
    before = books.one(sql)
    done = act()
    time.sleep(_TOLD_SECONDS)
    return done, books.one(sql) - before
