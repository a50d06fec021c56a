"""Worker processes report what they answered, and the reports of all of them together are exact."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import httpx
import pytest

from cuota.db.embedded.server import open_embedded
from support.commands import Cuota, on_a_folder
from support.faults.served import workers_of
from support.serving import serving

DOCS = "Docs and files"
OF_FIRST, OF_SECOND = 20, 40


@pytest.fixture(scope="module")
def cuota() -> Iterator[Cuota]:
    with on_a_folder() as command:
        yield command


async def reports(cuota: Cuota) -> list[asyncpg.Record]:
    with open_embedded(cuota.data) as embedded:
        connection = await asyncpg.connect(**embedded.dsn_kwargs)
        try:
            return list(
                await connection.fetch(
                    "SELECT process_id, pid, machine, figures FROM process_minutes ORDER BY at"
                )
            )
        finally:
            await connection.close()


def worker_processes(parent: int) -> list[int]:
    """Return the process ids of the worker processes, both of which started before the line of JSON."""
    found = workers_of(parent)
    assert len(found) == 2
    return found


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """Let a process rest, so that the other process answers every request."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def ask(address: str, times: int) -> None:
    for _ in range(times):
        answer = httpx.get(f"{address}/static/checkout.css", trust_env=False, timeout=60)
        assert answer.status_code == 200


def test_two_processes_report_every_answer_once_also_the_last_ones_before_they_stop(cuota: Cuota) -> None:
    with serving(cuota, "--workers", "2") as (line, process):
        first, second = worker_processes(process.pid)
        with stopped(second):
            ask(line["url"], OF_FIRST)
        with stopped(first):
            ask(line["url"], OF_SECOND)
    answers: Counter[int] = Counter()
    for row in asyncio.run(reports(cuota)):
        counted, errors, buckets = json.loads(row["figures"])["groups"].get(DOCS, [0, 0, [0]])
        assert (errors, sum(buckets)) == (0, counted)
        answers[row["pid"]] += counted
    assert answers == {first: OF_FIRST, second: OF_SECOND}
