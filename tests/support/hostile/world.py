"""Reads the rows of bad_inputs.csv, and has the services and helpers with which a row is tried."""

from __future__ import annotations

import csv
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.api.bodies import JSON
from support.makers import Merchant, Running


@dataclass(frozen=True)
class Row:
    """One kind of bad input, and the answer that it must get."""

    id: str
    surface: str
    input: str
    expect: str
    notes: str

    def __str__(self) -> str:
        return f"{self.id} ({self.surface}): {self.input} -> {self.expect}"


@dataclass(frozen=True)
class World:
    """A sandbox with two merchants, and a production service with one. The sandbox's first merchant captures by API
    calls."""

    service: Running
    merchant: Merchant
    auto_merchant: Merchant
    elsewhere: Running
    foreign: Merchant

    @property
    def port(self) -> int:
        return int(self.service.settings.public_url.rpartition(":")[2])

    async def order(self, content: bytes, **headers: str) -> httpx.Response:
        """Send `POST /order` with exactly these bytes."""
        return await self.merchant.http.post("/order", content=content, headers={**JSON, **headers})

    async def half_captured(self) -> dict[str, Any]:
        """Return an approved order of 100.00, of which half is captured."""
        order = await self.merchant.approved("100.00")
        assert (await self.merchant.move(order, "capture", "50.00", "half")).status_code == 200
        return order


Ask = Callable[[World, Row], Awaitable[None]]
ASK: dict[str, Ask] = {}


def asks(*ids: str) -> Callable[[Ask], Ask]:
    """Register the decorated function as the one that tries these rows."""

    def note(ask: Ask) -> Ask:
        for name in ids:
            assert name not in ASK, name
            ASK[name] = ask
        return ask

    return note


def read_rows() -> list[Row]:
    """Return the rows of the list beside this file."""
    with (Path(__file__).parents[2] / "hostile" / "bad_inputs.csv").open(
        newline="", encoding="utf-8"
    ) as file:
        return [Row(**line) for line in csv.DictReader(file)]


def statuses(row: Row, decided: dict[str, tuple[str, str]]) -> set[int]:
    """Return the statuses that a row allows. If a decision overrides the row, the decision's statuses."""
    said = decided[row.id][0] if row.id in decided else row.expect
    return {int(number) for number in re.findall(r"\b[2-5]\d\d\b", said)}


def assert_answers(row: Row, allowed: set[int], answers: Iterable[httpx.Response]) -> None:
    """Assert that each answer has a status that the row allows."""
    seen = [(answer.status_code, answer.request.url.raw_path[:80], answer.text[:300]) for answer in answers]
    assert seen, f"{row}: nothing was asked"
    wrong = [each for each in seen if each[0] not in allowed]
    assert wrong == [], f"{row}\nallowed {sorted(allowed)}, answered {wrong}"
