"""Orders that live through an upgrade: each is created, approved, captured and refunded in steps, and the release may change between two steps."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from cuota.commands.checkout_walker import walk
from cuota.core import money
from support.deploy.machines import ORDER

# What a chargeback took back, or may take back, cannot be refunded.
CHARGED_BACK = ("chargeback_open", "refund_exceeds_captured")
PATIENCE = 90.0
DISPUTED = "4000000000002685"
# Most cards pay. The others are disputed after a week, fail after the first installment, are reported lost, or are replaced.
CARDS = ("4242424242424242",) * 4 + (DISPUTED, "4000000000000341", "4000000000009987", "4000000000004004")
OPEN = 8


@dataclass
class OrderLife:
    """One order: its next step, and what its merchant was told. Amounts are cents."""

    order: str
    redirect: str
    outcome: str
    step: int = 0
    captured: int = 0
    refunded: int = 0
    voided: int = 0
    card: str = ""


@dataclass
class Shop:
    """Takes orders through their steps. Each request is repeated with its key until its answer is definite."""

    url: str
    headers: dict[str, str]
    choice: random.Random
    lives: list[OrderLife] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self._http = httpx.Client(
            base_url=self.url, headers=self.headers, trust_env=False, timeout=60, verify=False
        )

    def run(self, stop: threading.Event) -> None:
        """Create an order, or take an earlier one a step further, until the stop."""
        while not stop.is_set():
            open_lives = [each for each in self.lives if each.step < len(STEPS)]
            if len(open_lives) < OPEN:
                self.create()
            else:
                self.advance(self.choice.choice(open_lives))

    def end(self) -> None:
        """Compare each order with what its merchant was told, and close the connections."""
        for life in self.lives:
            self.check(life)
        self._http.close()

    def close_all(self) -> None:
        """Take each order so far that nothing is authorized, because authorizations and checkouts expire when the clock moves."""
        for life in self.lives:
            while life.step < STEPS.index(Shop.refund):
                self.advance(life)

    def create(self) -> None:
        """Create an order, twice under one key: both answers must be the same."""
        key = secrets.token_hex(8)
        body = {**ORDER, "merchantReference": key}
        made = self._asked("POST", "/order", body, key)
        again = self._asked("POST", "/order", body, key)
        if made != again:
            self.problems.append(f"the repetition of a creation was answered {again}, not {made}")
        outcome = self.choice.choice(["approved"] * 6 + ["declined", "abandoned"])
        self.lives.append(OrderLife(made["orderId"], made["redirectUrl"], outcome))

    def advance(self, life: OrderLife) -> None:
        """Take the next step. A step that fails is reported once, and not repeated."""
        step, life.step = STEPS[life.step], len(STEPS)
        try:
            life.step = step(self, life)
        except Exception as error:  # noqa: BLE001 - each problem is reported, and the other orders go on
            self.problems.append(f"order {life.order}: {type(error).__name__}: {error}")

    def approve(self, life: OrderLife) -> int:
        phone = f"212{self.choice.randrange(200, 999)}{self.choice.randrange(10_000):04d}"
        life.card = self.choice.choice(CARDS)
        walk(life.redirect, life.outcome, phone=phone, card_number=life.card)
        return 1 if life.outcome == "approved" else len(STEPS)

    def capture(self, life: OrderLife) -> int:
        """Capture half, twice under one key."""
        self._twice(life, "capture", 5000)
        life.captured += 5000
        return 2

    def close(self, life: OrderLife) -> int:
        """Capture or void the rest."""
        if self.choice.random() < 0.5:
            self._twice(life, "capture", 5000)
            life.captured += 5000
        else:
            self._twice(life, "void", 5000)
            life.voided += 5000
        return 3

    def refund(self, life: OrderLife) -> int:
        """Refund an odd part of the captures."""
        cents = self.choice.randint(1, (life.captured - life.refunded) // 2)
        try:
            self._twice(life, "refund", cents)
        except AssertionError as refused:
            if life.card == DISPUTED and any(code in str(refused) for code in CHARGED_BACK):
                return len(STEPS)
            raise
        life.refunded += cents
        return self.choice.choice([3, 4])

    def check(self, life: OrderLife) -> None:
        """Compare the order with what its merchant was told."""
        found = self._asked("GET", f"/order/{life.order}", None, None)
        for name in ("captured", "refunded", "voided"):
            cents = money.cents_of(str(found[f"{name}Amount"]))
            # A lost chargeback counts as a refund.
            lost = cents - life.refunded if name == "refunded" and life.card == DISPUTED else 0
            if lost < 0 or cents - lost != getattr(life, name):
                self.problems.append(f"order {life.order} has {name} {cents}, not {getattr(life, name)}")

    def _twice(self, life: OrderLife, call: str, cents: int) -> None:
        key = secrets.token_hex(8)
        body = {"amount": money.text_of(cents), "merchantReference": key}
        path = f"/order/{life.order}/{call}"
        first, second = (self._asked("POST", path, body, key) for _ in range(2))
        if first != second:
            self.problems.append(f"the repetition of a {call} was answered {second}, not {first}")

    def _asked(self, method: str, path: str, body: object, key: str | None) -> dict[str, Any]:
        """Repeat the request until its answer is definite: not lost, not 503, and not 409 (the first request still runs)."""
        headers = {"Idempotency-Key": key} if key else {}
        until = time.monotonic() + PATIENCE
        while True:
            self.calls += 1
            try:
                answer = self._http.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                status, text = 0, repr(error)
            else:
                status, text = answer.status_code, answer.text
                if status == httpx.codes.OK:
                    return dict(answer.json())
            if status not in {0, 409, 503} or time.monotonic() > until:
                raise AssertionError(f"{method} {path} was answered {status} {text}")
            time.sleep(0.2)


STEPS: tuple[Callable[[Shop, OrderLife], int], ...] = (Shop.approve, Shop.capture, Shop.close, Shop.refund)
