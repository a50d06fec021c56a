"""Runs in one release under measurement: `bench/releases.py` starts this file with each release's own interpreter.

Prepares a service, its merchant and a pool of approved orders. Then it answers each line of standard input, `{"work",
"clients", "first", "count"}`, with a line of JSON: requests a second, p99, and CPU milliseconds for each request. The
modules `bench` and `cuota` are those of the release under measurement, because its folder comes first on the path.
"""

from __future__ import annotations

import asyncio
import json
import sys
from uuid import UUID

import psutil

from bench import seed, service
from bench.__main__ import temporary, with_postgres
from bench.client import LoadJob, drive
from bench.service import BenchService

WARM, SECONDS = 0.4, 2.0


def main() -> None:
    pool = int(sys.argv[1])
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            made = service.merchant(place)
            with service.serving(place, 1) as web:
                token = service.token(place, made)
                model = seed.approved_order(place.url, token)
                asyncio.run(seed.fill(where, UUID(made["merchantId"]), model, pool))
                print(json.dumps({"ready": True}), flush=True)
                for line in sys.stdin:
                    print(json.dumps(measure(place, web, token, json.loads(line))), flush=True)


def measure(
    place: BenchService, web: list[psutil.Process], token: str, asked: dict[str, object]
) -> dict[str, float]:
    """Measure one operation for a short time."""
    work, clients = str(asked["work"]), int(str(asked["clients"]))
    first, count = int(str(asked["first"])), int(str(asked["count"]))
    before = service.cpu_seconds(web), service.postgres_cpu_seconds(place)
    found = drive(
        LoadJob(work, place.port, token, clients, WARM, SECONDS, first, count, cycle=work != "capture")
    )
    after = service.cpu_seconds(web), service.postgres_cpu_seconds(place)
    web_ms, sql_ms = ((then - now) * 1000 / found.answers for now, then in zip(before, after, strict=True))
    return {"rps": found.rps, "p99_ms": found.p99_ms, "web_ms": web_ms, "sql_ms": sql_ms}


if __name__ == "__main__":
    main()
