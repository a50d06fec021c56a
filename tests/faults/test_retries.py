"""A bad network, impatient clients, kills and stops: each operation ends with a definite answer and happens once."""

from __future__ import annotations

import asyncio

import pytest

from support.faults.campaign import battered, campaign_on, retried
from support.faults.struck_shop import Shop
from support.long_run import LONG, seed_of_campaign

pytestmark = pytest.mark.faults

OPERATIONS = 400
SECONDS = 15.0 if LONG else 8.0
APPLIED = 20


@pytest.fixture
def seed() -> int:
    return seed_of_campaign()


def test_operations_retried_through_resets_and_timeouts_end_definitely_and_happen_once(
    shop: Shop, seed: int
) -> None:
    with campaign_on(shop.service, shop.hooks, shop.books, seed) as under:
        proxy = asyncio.run(retried(under, OPERATIONS))
        assert under.close_the_books() == []
        assert len(proxy.happened) == 10, "every mishap befell requests and answers"
        assert under.tally()["applied"] > OPERATIONS / 5


def test_kills_and_stops_under_load_lose_nothing_and_repeat_nothing(shop: Shop, seed: int) -> None:
    with campaign_on(shop.service, shop.hooks, shop.books, seed) as under:
        fallen = asyncio.run(battered(under, SECONDS, hurry=True, least=APPLIED))
        under.minute_later()
        assert under.close_the_books() == []
        assert fallen.total() > 0
