"""Couriers on a separate service of one test, and common steps of the webhook tests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cuota.flows.webhook.deliver_webhooks import Courier, publish_events
from cuota.rails.http import GuardedClient
from cuota.work.retention import keep_terms
from support.makers import Merchant, order_body
from support.own_service import Own


@dataclass
class Post:
    """The service, and the courier that sends its webhooks."""

    own: Own

    @property
    def merchant(self) -> Merchant:
        return self.own.merchant

    @contextlib.asynccontextmanager
    async def courier(self) -> AsyncIterator[Courier]:
        """Make the courier of one worker, with its connections."""
        client = GuardedClient(loopback=True)
        courier = Courier(self.own.context, client)
        try:
            yield courier
        finally:
            await courier.finish(25)
            await client.close()

    async def publish(self) -> int:
        return await publish_events(self.own.context)

    async def deliver(self) -> None:
        """Send everything that is due now or becomes due meanwhile, and record every answer."""
        await self.publish()
        async with self.courier() as courier:
            while await courier.send_due():
                await courier.finish(25)

    async def register(self, url: str, merchant: Merchant | None = None) -> dict[str, Any]:
        answer = await (merchant or self.merchant).http.post("/webhook-endpoints", json={"url": url})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def events(self, merchant: Merchant | None = None) -> list[dict[str, Any]]:
        answer = await (merchant or self.merchant).http.get("/events", params={"limit": 100})
        return list(answer.json()["events"])

    async def deliveries(self, event: str) -> list[dict[str, Any]]:
        """Return the state of an event's delivery to each receiver, as the API shows it."""
        answer = await self.merchant.http.get(f"/events/{event}/deliveries")
        return list(answer.json()["deliveries"])

    async def complete(self, event: str) -> bool:
        """Return whether the API says that it lists all deliveries of the event."""
        answer = await self.merchant.http.get(f"/events/{event}/deliveries")
        return bool(answer.json()["complete"])

    async def replay(self, event: str) -> int:
        """Send an event again to all its receivers. Return how many there are."""
        answer = await self.merchant.http.post(f"/events/{event}/replay")
        assert answer.status_code == 200, answer.text
        return int(answer.json()["replayed"])

    async def pass_days(self, days: int) -> None:
        """Move the service's clock, and delete everything that has reached its age limit."""
        self.own.service.clock.ahead += timedelta(days=days)
        while await keep_terms(self.own.context):
            pass

    async def told(self, url: str, merchant: Merchant | None = None) -> dict[str, Any]:
        """Create an order whose events go to this address."""
        addresses = order_body()["merchant"]
        assert isinstance(addresses, dict)
        return await (merchant or self.merchant).create(merchant={**addresses, "statusCallbackUrl": url})

    async def ask(self, sql: str, *values: object) -> Any:
        """Read one value as the database's owner."""
        async with self.own.owner() as owner:
            return await owner.fetchval(sql, *values)
