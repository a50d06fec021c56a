"""A card is good through the last day of its month on the consumer's calendar, by the service's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from cuota.rails.card.sandbox import TOKENS_PATH
from support.core.values import PROFILE
from support.makers import Merchant, Running, complete
from support.pages.consumer import Consumer, Plan, new_number
from support.pages.visitor import Visitor
from support.phones import phone_number

EXPIRED = "This card has expired. Use another card."
# In Hawaii, the month ends ten hours after it ends by UTC; in Guam, ten hours before.
AFTER, BEFORE = timedelta(hours=6), timedelta(hours=-4)


@asynccontextmanager
async def month_end(service: Running, by: timedelta) -> AsyncIterator[tuple[str, str]]:
    """Inside the block, a month ends by UTC at this time from now. Gives this month as `YYYY-MM` and as cards show it."""
    now = service.clock.now()
    last = (now + timedelta(days=2)).replace(day=1)
    first = (last + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    async with service.clock.moved(seconds=(first + by - now).total_seconds()):
        yield f"{last:%Y-%m}", f"{last:%m/%y}"


async def test_in_hawaii_a_card_pays_until_its_month_has_ended_there(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    async with month_end(service, AFTER) as (month, expiry):
        page = await visitor.until("pay", await merchant.create(), state="HI")
        assert f'data-month="{month}"' in page.answer.text
        assert (await visitor.send("pay", card_expiry=expiry)).outcome == "approved"


async def test_in_guam_a_card_expires_when_its_month_has_ended_there(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    async with month_end(service, BEFORE) as (month, expiry):
        page = await visitor.until("pay", await merchant.create(), state="GU", postcode="96910")
        assert 'data-month="' in page.answer.text
        assert f'data-month="{month}"' not in page.answer.text
        page = await visitor.send("pay", card_expiry=expiry)
        assert (page.status, EXPIRED in page.text) == (400, True)


@pytest.mark.parametrize(
    ("state", "by", "accepted"), [("HI", AFTER, True), ("GU", BEFORE, False)], ids=["Hawaii", "Guam"]
)
async def test_on_the_account_page_the_same_day_counts(
    service: Running, auto_merchant: Merchant, state: str, by: timedelta, *, accepted: bool
) -> None:
    profile = replace(PROFILE, address=replace(PROFILE.address, state=state))
    async with month_end(service, by) as (month, expiry), service.client() as http:
        consumer = Consumer(http, service, phone_number())
        order = await auto_merchant.create()
        await complete(service, auto_merchant.merchant_id, order, profile=profile, phone=consumer.phone)
        await consumer.enter()
        page = await consumer.open(f"{Plan(auto_merchant, order).path}/card")
        assert (f'data-month="{month}"' in page.answer.text) is accepted
        page = await consumer.send("card", card_number=new_number(), card_expiry=expiry, card_cvc="737")
        assert (page.status, EXPIRED in page.text) == ((200, False) if accepted else (400, True))


async def test_the_simulated_processor_takes_a_card_until_its_month_has_ended_everywhere(
    service: Running,
) -> None:
    # The processor does not know where the consumer is. The page has compared the card with the consumer's day.
    async with service.client() as http:
        for by, status in ((AFTER, 200), (timedelta(hours=12), 400)):
            async with month_end(service, by) as (_, expiry):
                card = {"number": "4242 4242 4242 4242", "expiry": expiry, "cvc": "737"}
                assert (await http.post(TOKENS_PATH, json=card)).status_code == status
