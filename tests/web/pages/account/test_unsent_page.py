"""The page of a payment that ends because its request never reached the card rail."""

from __future__ import annotations

from typing import Any

from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from support.flows.unsent import agreed_of, unsent, work_until_sure
from support.own_service import Own
from support.pages.consumer import Consumer, Plan


class WorkedMeanwhile:
    """The sandbox's rail. During the next look-up, the worker ends the charge."""

    def __init__(self, own: Own) -> None:
        self._own, self._rails = own, own.context.rails.card.by_name
        self._rail: Any = self._rails["sandbox"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rail, name)

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        self._rails["sandbox"] = self._rail
        await work_until_sure(self._own)
        answer: CardAnswer | None = await self._rail.find_charge(asked)
        return answer


async def test_the_page_says_that_nothing_was_charged_and_not_that_the_card_was_declined(own: Own) -> None:
    phone = "3124412399"
    order = await unsent(own, phone=phone)
    async with own.service.client() as http:
        consumer = Consumer(http, own.service, phone)
        await consumer.enter()
        assert (await own.auto_merchant.move(order, "refund", "60.00")).status_code == 200
        own.context.rails.card.by_name["sandbox"] = WorkedMeanwhile(own)
        page = await consumer.open(Plan(own.auto_merchant, order).path)
    assert (await agreed_of(own, order)).order.charging is None
    assert "Your payment did not reach your bank; nothing was charged." in page.text
    assert "declined" not in page.text
