"""A storefront that repeats each request under the same key until the answer is definite."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from support.deploy.machines import ORDER

PAUSE_SECONDS = 0.03


@dataclass
class Storefront:
    """Creates orders and captures one cent at a time from its own order. Notes each answer and its time."""

    urls: list[str]
    headers: dict[str, str]
    order: str
    created: dict[str, str] = field(default_factory=dict)
    captured: set[str] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    unsure: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        limits = httpx.Limits(max_connections=4)
        async with httpx.AsyncClient(
            trust_env=False, timeout=12, headers=self.headers, limits=limits
        ) as http:
            while not stop.is_set():
                await self._create(http)
                await self._capture(http)

    async def _create(self, http: httpx.AsyncClient) -> None:
        reference = secrets.token_hex(8)
        body = {**ORDER, "merchantReference": reference}
        answer = await self._asked(http, "/order", body, {"Idempotency-Key": reference})
        if answer.status_code == 200:
            self.created[reference] = answer.json()["orderId"]
        else:
            self.strange.append(answer.text)

    async def _capture(self, http: httpx.AsyncClient) -> None:
        reference = secrets.token_hex(8)
        body = {"amount": "0.01", "merchantReference": reference}
        answer = await self._asked(http, f"/order/{self.order}/capture", body, {})
        # If the request was already applied, the answer to its repetition says so. That is an acknowledgment
        # too.
        if answer.status_code == 200 or answer.json().get("code") == "duplicate_reference":
            self.captured.add(reference)
        else:
            self.strange.append(answer.text)

    async def _asked(
        self, http: httpx.AsyncClient, path: str, body: Mapping[str, object], headers: dict[str, str]
    ) -> httpx.Response:
        """Repeat the request until the answer is definite: not lost, not 503, and not 409 (the first request
        is still running)."""
        for again in range(10_000):
            await asyncio.sleep(PAUSE_SECONDS if not again else 0.2)
            try:
                answer = await self.once(http, self.urls[again % len(self.urls)] + path, body, headers)
            except httpx.TransportError:
                self.unsure += 1
                continue
            if answer.status_code not in {409, 503}:
                self.times.append(time.monotonic())
                return answer
            self.unsure += 1
        raise AssertionError("no definite answer")

    async def once(
        self, http: httpx.AsyncClient, url: str, body: Mapping[str, object], headers: dict[str, str]
    ) -> httpx.Response:
        """Send one request."""
        return await http.post(url, json=body, headers=headers)
