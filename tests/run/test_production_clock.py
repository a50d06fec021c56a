"""`cuota serve`, `cuota work` and commands of production, each as its own process, on a machine whose clock is a day ahead."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from cuota.db.embedded.server import open_embedded
from support.faults.served import ORDER, Service, token, until
from support.folders import new_folder
from support.ports import free_port
from support.production import PRODUCTION

RAILS = "support.rails.wrong_clock"
TESTS = Path(__file__).parents[1]
MINUTE = timedelta(minutes=1)


class ProductionService(Service):
    """A production service whose rails set the clock of each process a day ahead."""

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        rails = {
            "CUOTA_CARD_RAIL": f"{RAILS}.RealCardRail",
            "CUOTA_MESSAGE_RAIL": f"{RAILS}.RealMessageRail",
        }
        return {
            **super().environment,
            **PRODUCTION,
            **rails,
            "CUOTA_DATA_DIR": str(self.data),
            "PYTHONPATH": path,
        }

    def ask(self, sql: str, *values: object) -> list[asyncpg.Record]:
        """Return the rows of a query."""

        async def asked() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(**embedded.dsn_kwargs)
            try:
                return list(await connection.fetch(sql, *values))
            finally:
                await connection.close()

        with open_embedded(self.data) as embedded:
            return asyncio.run(asked())


@pytest.fixture
def production() -> Iterator[ProductionService]:
    base = new_folder("cuota-production-")
    made = ProductionService(base / "data", free_port())
    try:
        made.start()
        yield made
    finally:
        made.kill()
        until(lambda: not (made.data / "pg" / "postmaster.pid").exists())
        shutil.rmtree(base, ignore_errors=True)


def order_of(service: ProductionService, merchant: dict[str, Any]) -> str:
    answer = httpx.post(
        f"{service.url}/order",
        json={
            **ORDER,
            "merchant": {
                "redirectConfirmUrl": "https://s.example/yes",
                "redirectCancelUrl": "https://s.example/no",
            },
        },
        headers=token(service.url, merchant),
        trust_env=False,
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["orderId"])


def test_all_processes_of_production_have_the_database_s_time(production: ProductionService) -> None:
    before: datetime = production.ask("SELECT clock_timestamp() AS at")[0]["at"]
    merchant = production.merchant()
    late, early = order_of(production, merchant), order_of(production, merchant)
    made = production.ask(
        "SELECT created_at, expires_at, uuid_send(order_id) AS id, clock_timestamp() AS at FROM orders"
    )
    for each in made:
        assert before < each["created_at"] < each["at"]
        assert abs(int.from_bytes(each["id"][:6], "big") / 1000 - each["created_at"].timestamp()) < 1
    (logged,) = production.ask("SELECT at FROM operator_log")
    assert before < logged["at"] < made[0]["at"]
    production.stop()

    # The one order is due, and the other one in an hour, which this machine's clock passed long ago.
    due = "UPDATE orders SET expires_at = clock_timestamp() + $2, due_at = clock_timestamp() + $2 WHERE order_id = $1::text::uuid"
    production.ask(due, late, -MINUTE)
    production.ask(due, early, timedelta(hours=1))
    process = subprocess.Popen(
        [sys.executable, "-m", "cuota", "work"], env=production.environment, stdout=subprocess.PIPE, text=True
    )
    production.started.append(process)
    assert process.stdout
    assert json.loads(process.stdout.readline()) == {"working": True, "environment": "production"}
    ended = "SELECT order_id::text FROM orders WHERE status = 'Abandoned'"
    until(lambda: production.ask(ended), 60)
    process.terminate()
    assert process.wait(60) == 0
    assert [row["order_id"] for row in production.ask(ended)] == [late]
