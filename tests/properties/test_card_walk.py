"""Random walks of a virtual card. After each step, the issuer's records, the order and the ledger agree.

The seed is part of the test's name, as in test_api_walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from cuota.db.verify.recalculate import VerifyReport, _verify_merchant
from cuota.flows.checkout.issue_card import tell_limits
from support.makers import Merchant, Running, make_merchant
from support.virtual_card import Virtual, virtual_order

STEPS = 14
WALKS = 8
MOVED = {"capture": "captured", "reverse": "reversed", "refund": "refunded"}


@dataclass
class Walk:
    """One card. `order` has the expected cents of the order's movements by kind, and `card` those that the card
    made."""

    virtual: Virtual
    dice: Random
    amount: int
    authorised: int = 0
    authorization: str = ""

    def __post_init__(self) -> None:
        self.card = dict.fromkeys(MOVED, 0)
        self.order = dict.fromkeys(("capture", "void", "refund"), 0)

    @property
    def rest(self) -> int:
        return self.amount - self.order["capture"] - self.order["void"]

    def most(self, kind: str) -> int:
        """Return the largest amount for this kind: what is left of the card's authorization, and at most what is left
        of the order."""
        if kind == "refund":
            return min(
                self.card["capture"] - self.card["refund"], self.order["capture"] - self.order["refund"]
            )
        return min(self.authorised - self.card["capture"] - self.card["reverse"], self.rest)

    def some(self, most: int) -> int:
        near = self.dice.randint(1, max(1, most))
        return self.dice.choice([1, max(1, most), most + 1, near, near])

    async def authorize(self, card: dict[str, str]) -> None:
        amount = self.some(self.amount - self.order["void"])
        answer = await self.virtual.authorize(card, _text(amount))
        voided = self.order["void"]
        right = not self.authorised and voided < self.amount and amount <= self.amount - voided
        assert answer["approved"] == right, answer
        if right:
            self.authorised, self.authorization = amount, answer["authorizationId"]

    async def clear(self) -> None:
        kind = self.dice.choice(["capture", "capture", "refund", "refund", "reverse"])
        amount = self.some(self.most(kind))
        answer = await self.virtual.clear(self.authorization, kind, _text(amount))
        right = amount <= self.most(kind)
        assert answer.status_code == (200 if right else 422), answer.text
        if right:
            self.card[kind] += amount
            self.order["void" if kind == "reverse" else kind] += amount

    async def call(self) -> None:
        """Capture, void or refund by the API, beside the card."""
        kind = self.dice.choice(["void", "capture", "refund"])
        most = self.order["capture"] - self.order["refund"] if kind == "refund" else self.rest
        amount = min(self.some(most), max(1, self.amount // 5))
        answer = await self.virtual.shop.move(self.virtual.created, kind, _text(amount))
        assert answer.status_code == (200 if amount <= most else 422), answer.text
        if amount <= most:
            self.order[kind] += amount

    async def compare(self, service: Running) -> None:
        book: dict[str, Any] = await self.virtual.book()
        assert {kind: book[column] for kind, column in MOVED.items()} == self.card
        assert (book["authorised"], book["held"], book["going_back"]) == (self.authorised, 0, 0)
        record = await self.virtual.shop.read(self.virtual.created)
        for kind, column in (("capture", "captured"), ("void", "voided"), ("refund", "refunded")):
            assert round(record[f"{column}Amount"] * 100) == self.order[kind]
        for kind, name in (("capture", "captures"), ("reverse", "voids"), ("refund", "refunds")):
            by_card = [item for item in record[name] if item["merchantReference"].startswith("card-")]
            assert sum(round(item["amount"] * 100) for item in by_card) == self.card[kind]
        await tell_limits(service.context)
        assert (await self.virtual.book())["spend_limit"] == self.amount - self.order["void"]
        report = VerifyReport()
        await _verify_merchant(service.context.pool, self.virtual.shop.merchant_id, report, lambda: None)
        assert (report.orders, report.disagreements) == (1, [])


def _text(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


async def _begin(shop: Merchant, dice: Random) -> tuple[Walk, dict[str, str]]:
    amount = dice.choice([100, 101, 10_003, dice.randint(100, 30_000)])
    fee = dice.choice([0, 0, dice.randint(0, amount // 10)])
    virtual = await virtual_order(shop, _text(amount), merchantFeeForPaymentPlan=_text(fee))
    return Walk(virtual, dice, amount), await virtual.card()


@pytest.mark.parametrize("seed", range(WALKS))
async def test_card_order_and_ledger_agree_after_every_step_of_a_random_walk(
    service: Running, seed: int
) -> None:
    dice = Random(seed)
    async with make_merchant(service) as shop:
        walk, card = await _begin(shop, dice)
        while not walk.authorised:
            await walk.authorize(card)
        for _ in range(STEPS):
            step = dice.choice([walk.clear] * 5 + [walk.call, lambda: walk.authorize(card)])
            await step()
            await walk.compare(service)
