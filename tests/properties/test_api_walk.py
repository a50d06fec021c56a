"""Random walks through the real API on PostgreSQL. After each step, answers, record and ledger agree with the model.

The seed is part of the test's name: `pytest tests/properties/test_api_walk.py -k "walk[7]"` repeats one walk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import pytest

from cuota.db.order import orders
from cuota.db.verify.recalculate import VerifyReport, _verify_merchant
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.order.expire_authorizations import expire_authorization
from cuota.flows.order.return_money import return_money
from support.contract import read_json
from support.makers import Merchant, Running, complete, make_merchant
from support.properties.model import Model

STEPS = 12
WALKS = 15
ANSWERED = {"capture": "captures", "void": "voids", "refund": "refunds"}


@dataclass
class Walker:
    """One order of one merchant, its model, and the walk's source of randomness."""

    service: Running
    shop: Merchant
    created: dict[str, Any]
    model: Model
    dice: Random

    @property
    def order_id(self) -> UUID:
        return UUID(self.created["orderId"])

    async def ask(self, kind: str, reference: str, amount: int, *, dry: bool) -> tuple[int, Any]:
        """Send one call. Its amount is a JSON number or a string, because storefronts send both."""
        text = f"{amount // 100}.{amount % 100:02d}"
        written = text if self.dice.random() < 0.5 else f'"{text}"'
        body = f'{{"amount":{written},"merchantReference":"{reference}"}}'
        answer = await self.shop.http.post(
            f"/order/{self.order_id}/{kind}{'?dryRun=true' if dry else ''}",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        return answer.status_code, read_json(answer.content)

    async def move(self) -> None:
        """Capture, void or refund a random amount under a random key: first as a dry run, then really."""
        kind = self.dice.choice(["capture", "capture", "void", "refund", "refund"])
        limit = self.model.limit(kind)
        near = self.dice.randint(1, max(1, limit))
        amount = self.dice.choice(
            [1, max(1, limit), limit + 1, near, near, near, self.dice.randint(1, self.model.amount)]
        )
        reference = self.dice.choice("abcdefgh")
        verdict = self.model.verdict(kind, reference, amount)
        status, preview = await self.ask(kind, reference, amount, dry=True)
        assert status == (200 if verdict is None else 422), preview
        if verdict is None:
            assert _plan_of(preview["before"]) == self.model.plan()
            to_cards = self.model.apply(kind, reference, amount)
            assert cents(preview["returnedToCard"]) == to_cards.total()
            assert _plan_of(preview["after"]) == self.model.plan()
            assert _in_cents(preview["after"]["balances"]) == self.model.balances()
        status, answer = await self.ask(kind, reference, amount, dry=False)
        if verdict is None:
            assert (status, cents(answer["amount"]), answer["merchantReference"]) == (200, amount, reference)
            return
        assert (status, answer["code"]) == (422, verdict)
        assert _in_cents(answer["balances"]) == self.model.balances()
        if verdict == "duplicate_reference":
            earlier = self.model.used[kind, reference]
            original = answer["original"]
            assert (cents(original["amount"]), original["sameRequest"]) == (earlier, earlier == amount)

    async def end_the_authorization(self) -> None:
        """Run the worker's job after the authorization has ended."""
        async with self.service.clock.moved(days=13, minutes=1):
            await expire_authorization(self.service.context, self.shop.merchant_id, self.order_id)
        # The clock is moved back. If the job voided nothing, the authorization is valid again.
        if self.model.completed and not self.auto:
            self.model.lapse()
            self.model.ended = False

    @property
    def auto(self) -> bool:
        """True for an auto capture, which has no authorization that could end."""
        return bool(self.created["auto"])

    async def return_money(self) -> None:
        """Run the worker's job that sends due card refunds. The clock is moved ahead, because the refunds of an ended
        authorization are due later."""
        async with self.service.clock.moved(days=13, minutes=2):
            # The job sends one batch at a time, including refunds that other tests have left.
            while await return_money(self.service.context):
                pass
        self.model.returned(self.model.due_to_cards)

    async def compare(self) -> None:
        """Compare the model with the record, the stored plan and the ledger's accounts, and run `cuota verify` for this
        merchant."""
        answer = await self.shop.http.get(f"/order/{self.order_id}")
        record = read_json(answer.content)
        balances = self.model.balances()
        shown = {
            name: cents(record[f"{name}Amount"]) for name in ("captured", "voided", "refunded", "original")
        }
        assert shown == {
            "captured": balances["captured"],
            "voided": balances["voided"],
            "refunded": balances["refunded"],
            "original": self.model.amount,
        }
        assert cents(record["amount"]) == balances["orderAmount"]
        assert record["paymentState"] == self.model.payment_state()
        for kind, name in ANSWERED.items():
            assert sum(cents(item["amount"]) for item in record[name]) == self.model.taken[kind]
            listed = {item["merchantReference"] for item in record[name]}
            assert listed >= {reference for used, reference in self.model.used if used == kind}
        pool = self.service.context.pool
        found = await orders.read_with_plan(pool, self.shop.merchant_id, self.order_id)
        assert found is not None
        expected = self.model.plan() if self.model.completed else {}
        assert {item.number: (item.amount, item.fee) for item in found.plan} == expected
        assert await self._accounts() == self.model.accounts()
        report = VerifyReport()
        await _verify_merchant(pool, self.shop.merchant_id, report, lambda: None)
        assert (report.orders, report.disagreements) == (1, [])

    async def _accounts(self) -> dict[str, int]:
        rows = await self.service.context.pool.fetch(
            """SELECT account, sum(cents)::bigint AS held FROM (
                SELECT debit AS account, amount AS cents FROM transfers WHERE merchant_id = $1 AND order_id = $2
                UNION ALL
                SELECT credit, -amount FROM transfers WHERE merchant_id = $1 AND order_id = $2
            ) sides GROUP BY account HAVING sum(cents) <> 0""",
            self.shop.merchant_id,
            self.order_id,
        )
        return {row["account"]: row["held"] for row in rows}


def cents(value: Any) -> int:
    """Return the cents of a JSON amount. The amount must be exact."""
    assert value * 100 == int(value * 100)
    return int(value * 100)


def _in_cents(balances: dict[str, Any]) -> dict[str, int]:
    return {name: cents(value) for name, value in balances.items()}


def _plan_of(state: dict[str, Any]) -> dict[int, tuple[int, int]]:
    return {item["number"]: (cents(item["amount"]), cents(item["fee"])) for item in state["plan"]}


async def _begin(service: Running, shop: Merchant, dice: Random, *, auto: bool) -> Walker:
    amount = dice.choice([100, 101, 10_003, dice.randint(100, 30_000), dice.randint(100, 30_000)])
    fee = dice.choice([0, 0, 1, dice.randint(0, amount), dice.randint(0, amount // 10)])
    created = await shop.create(
        f"{amount // 100}.{amount % 100:02d}", merchantFeeForPaymentPlan=f"{fee // 100}.{fee % 100:02d}"
    )
    completed = dice.random() < 0.85
    if completed:
        await complete(service, shop.merchant_id, created)
    elif dice.random() < 0.5:
        await leave_checkout(service.context, shop.merchant_id, UUID(created["orderId"]))
    model = Model(amount, fee, auto=auto, completed=completed)
    return Walker(service, shop, {**created, "auto": auto}, model, dice)


@pytest.mark.parametrize("seed", range(WALKS))
async def test_after_every_step_of_a_random_walk_the_service_agrees_with_the_model(
    service: Running, seed: int
) -> None:
    dice = Random(seed)
    auto = dice.random() < 0.3
    async with make_merchant(service, defer_funds_capture=not auto) as shop:
        walker = await _begin(service, shop, dice, auto=auto)
        steps: list[Callable[[], Any]] = [walker.move] * 8 + [
            walker.return_money,
            walker.end_the_authorization,
        ]
        await walker.compare()
        for _ in range(STEPS):
            await dice.choice(steps)()
            await walker.compare()
