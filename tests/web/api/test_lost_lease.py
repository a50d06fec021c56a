"""A process stands still for longer than the lease of its Idempotency-Key. A retry runs the request; the first answer is the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from cuota.web.service import Service
from support.db.same_pool import SamePool
from support.makers import Merchant, order_body
from support.own_service import Own

KEY = {"Idempotency-Key": "slow"}


class PausedBeforeSave(SamePool):
    """The service's pool. The first save waits until the lease has ended and a retry was answered."""

    def __init__(self, own: Own, call: str, retry: Any) -> None:
        super().__init__(own.context.pool)
        self._own, self._call, self._retry = own, call, retry
        self.plain: Service = own.service.app.service
        self.retried: httpx.Response | None = None

    async def fetchrow(self, sql: str, *values: object) -> Any:
        if self._call in sql and self.retried is None:
            self._own.service.app.service = self.plain
            await super().fetchrow(
                "UPDATE idempotency_keys SET lease_ends_at = now() WHERE merchant_id = $1 AND key = $2",
                self._own.merchant.merchant_id, KEY["Idempotency-Key"],
            )  # fmt: skip
            self.retried = await self._retry()
        return await super().fetchrow(sql, *values)


async def _paused(own: Own, call: str, send: Any) -> tuple[httpx.Response, httpx.Response]:
    """Return the answers to the first request and to its retry, which was answered earlier."""
    pool = PausedBeforeSave(own, call, send)
    own.service.app.service = replace(pool.plain, context=replace(own.context, pool=pool))
    first = await send()
    assert pool.retried is not None
    return first, pool.retried


async def _moved(merchant: Merchant, order: dict[str, Any]) -> int:
    record = await merchant.read(order)
    return len(record["captures"]) + len(record["voids"])


@pytest.mark.parametrize("verb", ["capture", "void"])
async def test_a_movement_that_lost_its_lease_gets_the_answer_of_its_retry(own: Own, verb: str) -> None:
    order = await own.merchant.approved("100.00")
    first, retried = await _paused(
        own, "save_orders(", lambda: own.merchant.move(order, verb, "10.00", "r-1", headers=KEY)
    )
    assert retried.status_code == 200
    assert (first.status_code, first.content) == (200, retried.content)
    assert first.headers["idempotency-replayed"] == "true"
    assert await _moved(own.merchant, order) == 1


async def test_a_new_order_that_lost_its_lease_gets_the_answer_of_its_retry(own: Own) -> None:
    body = order_body("100.00")
    first, retried = await _paused(
        own, "create_orders(", lambda: own.merchant.http.post("/order", json=body, headers=KEY)
    )
    assert retried.status_code == 200
    assert (first.status_code, first.content) == (200, retried.content)
    assert first.headers["idempotency-replayed"] == "true"
