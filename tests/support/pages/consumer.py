"""A consumer: a phone number, the plans agreed to with it, and a browser."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx

from cuota.core.checkout.card import passes_luhn
from cuota.flows.plan.collect_installments import collect
from support.makers import Merchant, Running, complete
from support.pages.visitor import Page, Visitor

PAYS, FAILS_LATER, LOST_LATER, DECLINED = (
    "4242 4242 4242 4242", "4000 0000 0000 0341", "4000 0000 0000 9987", "4000 0000 0000 0002",
)  # fmt: skip
# Each test uses another card number, because the limit counts a card's uses over all consumers.
NEW_CARD = {"card_number": "", "card_expiry": "12/39", "card_cvc": "737"}


def new_number() -> str:
    """Return the number of a Mastercard ending in 4444 that no other test uses."""
    while True:
        number = f"5{secrets.choice('12345')}{secrets.randbelow(10**10):010d}4444"
        if passes_luhn(number):
            return number


@dataclass
class Plan:
    """An approved order of a shop, as its consumer sees it in the account."""

    shop: Merchant
    order: dict[str, Any]

    @property
    def path(self) -> str:
        """The path of the plan's page."""
        return f"/account/plans/{self.shop.merchant_id}/{self.order['orderId']}"

    async def due(self) -> None:
        """Run the worker's job for this plan, as when something is due."""
        await collect(self.shop.service.context, self.shop.merchant_id, UUID(self.order["orderId"]))

    async def collected(self) -> None:
        """Run the job three times: up to two reminders, then the charge of the day."""
        for _ in range(3):
            await self.due()

    async def write(self, sql: str) -> None:
        """Write a state into the database that lasts too briefly, or takes too long, to wait for."""
        await self.shop.service.context.pool.fetchrow(sql, UUID(self.order["orderId"]))


class Consumer(Visitor):
    """One browser of one person."""

    def __init__(self, http: httpx.AsyncClient, service: Running, phone: str) -> None:
        super().__init__(http)
        self.service, self.phone = service, phone

    async def buy_at(self, shop: Merchant, amount: str = "100.00", card: str = PAYS, **more: object) -> Plan:
        """Agree to a plan with this number."""
        order = await shop.create(amount, **more)
        await complete(self.service, shop.merchant_id, order, card, phone=self.phone)
        return Plan(shop, order)

    async def enter(self) -> Page:
        """Enter the number and the code."""
        await self.open("/account")
        await self.send("phone", phone=self.phone)
        return await self.send("code", code="123456")

    async def pay(self, plan: Plan, which: str = "number=2") -> Page:
        """Open the page that shows the amount, and press its button."""
        await self.open(f"{plan.path}/pay?{which}")
        return await self.send("pay")
