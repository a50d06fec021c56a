"""A storefront that also writes down how long each single answer took, and what it was."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from support.deploy.lasting_storefront import Storefront


@dataclass
class TimedStorefront(Storefront):
    """`answers` are the moment, the seconds and the status of each answer. `node` has the merchant's rows."""

    node: int = 0
    merchant: str = ""
    answers: list[tuple[float, float, int]] = field(default_factory=list)

    async def once(
        self, http: httpx.AsyncClient, url: str, body: Mapping[str, object], headers: dict[str, str]
    ) -> httpx.Response:
        """One request, timed."""
        began = time.monotonic()
        answer = await http.post(url, json=body, headers=headers)
        self.answers.append((began, time.monotonic() - began, answer.status_code))
        return answer

    def seconds(self, since: float, until: float, status: int | None = None) -> list[float]:
        """How long the requests took that began between two moments."""
        return [
            took
            for began, took, said in self.answers
            if since <= began < until and (status is None or said == status)
        ]
