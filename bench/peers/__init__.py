"""Other systems with similar operations on this machine: the usual design, and localstripe.

Each has its own virtual environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from bench.work import ORDER_JSON, order_id_sql

PYTHON = Path(sys.prefix) / "peers" / "bin" / "python"
TOKEN = "sk_bench_0123456789"
CHARGES = 1_500
# Insert the rows as that system's own code would write them.
_FILL = f"""INSERT INTO orders (order_id, merchant_id, status, amount, captured, document, created_at)
    SELECT {order_id_sql("n")}, '00000000-0000-0000-0000-000000000007', 'Approved', 10000, 0, $1::json, now()
    FROM generate_series(1, $2::bigint) n"""


@contextlib.contextmanager
def usual(where: dict[str, Any], count: int) -> Iterator[int]:
    """Start FastAPI with SQLAlchemy's ORM on the same PostgreSQL, with `count` orders. Return the port."""
    database = "usual_way"
    asyncio.run(_execute(where, f"CREATE DATABASE {database}"))
    port = _free_port()
    arguments = [where["host"], str(where["port"]), where["user"], database, TOKEN]
    process = subprocess.Popen([PYTHON, Path(__file__).parent / "usual.py", str(port), *arguments])
    try:
        _wait(port, "/docs")
        own = {**where, "database": database}
        asyncio.run(_execute(own, _FILL, ORDER_JSON.decode(), count))
        asyncio.run(_execute(own, "VACUUM ANALYZE"))
        yield port
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def localstripe() -> Iterator[tuple[int, tuple[str, ...]]]:
    """Start localstripe, with charges that can be captured. Return the port and the ids of the charges."""
    port = _free_port()
    with tempfile.TemporaryFile() as log:
        command = [str(PYTHON), "-m", "localstripe", "--port", str(port), "--from-scratch"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait(port, "/")
            yield port, _charges(port)
        finally:
            process.terminate()
            process.wait(30)


def _charges(port: int) -> tuple[str, ...]:
    card = {"object": "card", "number": "4242424242424242", "exp_month": 12, "exp_year": 2099, "cvc": "123"}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}/v1", headers=headers, trust_env=False, timeout=30
    ) as http:
        customer = http.post("/customers", json={"source": card}).raise_for_status().json()["id"]
        charge = {"amount": 10000, "currency": "usd", "customer": customer, "capture": False}
        return tuple(
            http.post("/charges", json=charge).raise_for_status().json()["id"] for _ in range(CHARGES)
        )


async def _execute(where: dict[str, Any], sql: str, *values: object) -> None:
    owner = await asyncpg.connect(**where)
    try:
        await owner.execute(sql, *values)
    finally:
        await owner.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(port: int, path: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=5)
            return
        time.sleep(0.1)
    raise RuntimeError("A peer did not start.")
