"""What the rows of bad inputs are tried on, and how a row is read and asked."""

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
    """One kind of bad input, and the answer that it is to get."""

    id: str
    surface: str
    input: str
    expect: str
    notes: str

    def __str__(self) -> str:
        return f"{self.id} ({self.surface}): {self.input} -> {self.expect}"


@dataclass(frozen=True)
class World:
    """The sandbox with two merchants, the first capturing by calls; production with one of its own."""

    service: Running
    merchant: Merchant
    auto_merchant: Merchant
    elsewhere: Running
    foreign: Merchant

    @property
    def port(self) -> int:
        return int(self.service.settings.public_url.rpartition(":")[2])

    async def order(self, content: bytes, **headers: str) -> httpx.Response:
        """`POST /order` of these very bytes."""
        return await self.merchant.http.post("/order", content=content, headers={**JSON, **headers})

    async def half_captured(self) -> dict[str, Any]:
        """An approved order of 100.00, half of it captured."""
        order = await self.merchant.approved("100.00")
        assert (await self.merchant.move(order, "capture", "50.00", "half")).status_code == 200
        return order


Ask = Callable[[World, Row], Awaitable[None]]
ASK: dict[str, Ask] = {}


def asks(*ids: str) -> Callable[[Ask], Ask]:
    """This is how these rows are tried."""

    def note(ask: Ask) -> Ask:
        for name in ids:
            assert name not in ASK, name
            ASK[name] = ask
        return ask

    return note


def read_rows() -> list[Row]:
    """The list, as it stands beside this file."""
    with (Path(__file__).parents[2] / "hostile" / "bad_inputs.csv").open(
        newline="", encoding="utf-8"
    ) as file:
        return [Row(**line) for line in csv.DictReader(file)]


def statuses(row: Row, decided: dict[str, tuple[str, str]]) -> set[int]:
    """The statuses that a row allows; where the decisions say otherwise, theirs."""
    said = decided[row.id][0] if row.id in decided else row.expect
    return {int(number) for number in re.findall(r"\b[2-5]\d\d\b", said)}


def assert_answers(row: Row, allowed: set[int], answers: Iterable[httpx.Response]) -> None:
    """Each was answered with a status that the row allows."""
    seen = [(answer.status_code, answer.request.url.raw_path[:80], answer.text[:300]) for answer in answers]
    assert seen, f"{row}: nothing was asked"
    wrong = [each for each in seen if each[0] not in allowed]
    assert wrong == [], f"{row}\nallowed {sorted(allowed)}, answered {wrong}"
