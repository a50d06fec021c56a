"""A storefront that also records how long each answer took, and its status."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from support.deploy.lasting_storefront import Storefront


@dataclass
class TimedStorefront(Storefront):
    """`answers` has the moment, the seconds and the status of each answer. `node` is the worker that has the
    merchant's rows."""

    node: int = 0
    merchant: str = ""
    answers: list[tuple[float, float, int]] = field(default_factory=list)

    async def once(
        self, http: httpx.AsyncClient, url: str, body: Mapping[str, object], headers: dict[str, str]
    ) -> httpx.Response:
        """Send one request, and measure its time."""
        began = time.monotonic()
        answer = await http.post(url, json=body, headers=headers)
        self.answers.append((began, time.monotonic() - began, answer.status_code))
        return answer

    def seconds(self, since: float, until: float, status: int | None = None) -> list[float]:
        """Return how long the requests took that began between two moments."""
        return [
            took
            for began, took, said in self.answers
            if since <= began < until and (status is None or said == status)
        ]
