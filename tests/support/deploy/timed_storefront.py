"""A storefront that also records how long each answer took, and its status."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from support.deploy.lasting_storefront import Storefront


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """`began` is on the monotonic clock. `node` is the worker that had the merchant's rows at that moment. `reason`
    is the message of a 503, and empty otherwise."""

    began: float
    seconds: float
    status: int
    node: int
    reason: str


@dataclass
class TimedStorefront(Storefront):
    """`node` is the worker that has the merchant's rows now; a move of their shard changes it."""

    node: int = 0
    merchant: str = ""
    answers: list[TimedAnswer] = field(default_factory=list)

    async def once(
        self, http: httpx.AsyncClient, url: str, body: Mapping[str, object], headers: dict[str, str]
    ) -> httpx.Response:
        """Send one request, and measure its time."""
        began, node = time.monotonic(), self.node
        answer = await http.post(url, json=body, headers=headers)
        reason = answer.json()["message"] if answer.status_code == 503 else ""
        took = time.monotonic() - began
        self.answers.append(TimedAnswer(began, took, answer.status_code, node, reason))
        return answer

    def between(self, since: float, until: float) -> list[TimedAnswer]:
        """Return the answers to the requests that began between two moments."""
        return [each for each in self.answers if since <= each.began < until]
