"""Worker processes report what they answered, and the reports of all of them together are exact."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import asyncpg
import httpx
import pytest

from cuota.db.embedded.server import open_embedded
from support.commands import Cuota, on_a_folder
from support.serving import serving

DOCS = "Docs and files"
REQUESTS = 60


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


async def ask(address: str) -> None:
    """Ask over many connections, so that both processes get some."""
    for _ in range(REQUESTS // 10):
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=address, limits=limits, trust_env=False, timeout=60) as http:
            await asyncio.gather(*(http.get("/static/checkout.css") for _ in range(10)))


def test_two_processes_report_every_answer_once_also_the_last_ones_before_they_stop(cuota: Cuota) -> None:
    with serving(cuota, "--workers", "2") as (line, _):
        asyncio.run(ask(line["url"]))
    found = asyncio.run(reports(cuota))
    assert len({row["process_id"] for row in found}) == 2
    assert len({row["pid"] for row in found}) == 2
    counted = [json.loads(row["figures"])["groups"].get(DOCS, [0, 0, [0]]) for row in found]
    assert sum(answers for answers, _, _ in counted) == REQUESTS
    assert sum(sum(buckets) for _, _, buckets in counted) == REQUESTS
    assert sum(errors for _, errors, _ in counted) == 0
