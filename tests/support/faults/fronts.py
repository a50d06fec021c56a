"""Storefronts for campaigns. Their clients are impatient, and repeat each operation until its answer is definite."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from support.faults.journal import Intent, Journal, Told
from support.faults.served import ORDER

GIVES_UP_SECONDS = 90.0
SHORTEST, LONGEST = 0.02, 2.0
AGAIN = {409, 429, 500, 502, 503}
NOT_APPLIED = "nothing was applied"
SIZES = {"capture": (1, 99), "void": (1, 9), "refund": (1, 49)}
MIX = {"capture": 40, "refund": 20, "void": 8, "create": 12, "too much": 8, "again": 8, "stranger": 4}


@dataclass
class Merchant:
    """One merchant: its id, its headers, and its orders that consumers completed."""

    merchant_id: str
    headers: dict[str, str]
    orders: list[str] = field(default_factory=list)


@dataclass
class Storefront:
    """One client of one merchant. The client also tries to use `strangers`, the orders of other merchants.

    `heard` counts its answers by status, and by the presence of a Retry-After header.
    """

    url: str
    merchant: Merchant
    journal: Journal
    chance: Random
    hooks: str
    strangers: list[str] = field(default_factory=list)
    longest: float = LONGEST
    believes: float = 0.2
    done: list[Intent] = field(default_factory=list)
    heard: Counter[tuple[int, bool]] = field(default_factory=Counter)

    async def run(self, goes_on: Any) -> None:
        """Run operations one after the other, as long as `goes_on()` returns True."""
        async with httpx.AsyncClient(
            base_url=self.url, headers=self.merchant.headers, trust_env=False, verify=False
        ) as http:
            while goes_on():
                await self._one(http, self.chance.choices(list(MIX), list(MIX.values()))[0])

    async def _one(self, http: httpx.AsyncClient, what: str) -> None:
        journal, own, chance = self.journal, self.merchant.merchant_id, self.chance
        order = chance.choice(self.merchant.orders)
        if what == "create":
            await self.settle(http, journal.intend("create", own, "", chance.randint(100, 99999)))
        elif what == "stranger" and self.strangers:
            theirs = chance.choice(self.strangers)
            await self.settle(http, journal.intend("capture", own, theirs, 1, wrong="not theirs"))
        elif what == "too much":
            # The operation was refused, so its reference can be used again.
            first = journal.intend("capture", own, order, 999_999, wrong="over the limit")
            await self.settle(http, first)
            await self.settle(http, journal.intend("capture", own, order, 1, reference=first.reference))
        elif what == "again" and self.done:
            old = chance.choice(self.done)
            await self.settle(
                http, journal.intend(old.operation, own, old.order, old.amount, reference=old.reference)
            )
        else:
            kind = what if what in SIZES else "capture"
            await self.settle(http, journal.intend(kind, own, order, chance.randint(*SIZES[kind])))

    async def settle(self, http: httpx.AsyncClient, intent: Intent) -> None:
        """Send an operation until the answer is definite, and record that answer."""
        until, surely_not = time.monotonic() + GIVES_UP_SECONDS, True
        while time.monotonic() < until:
            try:
                # Usually the timeout is long enough for an answer, sometimes far too short.
                wait = SHORTEST + (self.longest - SHORTEST) * self.chance.random() ** 3
                answer = await http.post(**self._request(intent), timeout=wait)
            except httpx.TransportError:
                surely_not = False
                await asyncio.sleep(0.01)
                continue
            said = _read(answer)
            self.heard[answer.status_code, "retry-after" in answer.headers] += 1
            if answer.status_code not in AGAIN:
                self._note(intent, _told(intent, answer.status_code, said))
                return
            if answer.status_code not in {409, 429, 503}:
                self.journal.strange(intent, f"{answer.status_code} {answer.text[:200]}")
            surely_not &= NOT_APPLIED in str(said.get("detail", ""))
            if surely_not and self.chance.random() < self.believes:
                # The client believes the answer: nothing was applied. It does not repeat the request.
                self._note(intent, Told("put off"))
                return
            await asyncio.sleep(self.chance.uniform(0.02, 0.2))

    def _note(self, intent: Intent, told: Told) -> None:
        self.journal.told(intent, told)
        if told.result == "applied" and intent.operation != "create":
            self.done.append(intent)

    def _request(self, intent: Intent) -> dict[str, Any]:
        amount = f"{intent.amount // 100}.{intent.amount % 100:02d}"
        if intent.operation == "create":
            merchant = {**ORDER["merchant"], "statusCallbackUrl": self.hooks}
            body = {"amount": amount, "merchantReference": intent.reference, "merchant": merchant}
            return {"url": "/order", "json": body, "headers": {"Idempotency-Key": intent.reference}}
        body = {"amount": amount, "merchantReference": intent.reference}
        return {"url": f"/order/{intent.order}/{intent.operation}", "json": body}


def _read(answer: httpx.Response) -> dict[str, Any]:
    try:
        return dict(answer.json())
    except ValueError:
        return {}


def _told(intent: Intent, status: int, said: dict[str, Any]) -> Told:
    if status == 200 and intent.operation == "create":
        return Told("applied", intent.amount, said["orderId"])
    if status == 200:
        return Told("applied", round(said["amount"] * 100), intent.order)
    if said.get("code") == "duplicate_reference":
        original = said["original"]
        same = "repeated" if original["sameRequest"] else "taken"
        return Told(same, round(original["amount"] * 100), intent.order, said["code"])
    return Told("refused", 0, intent.order, said.get("code", f"http {status}"))
