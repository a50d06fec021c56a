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


def test_operations_retried_after_resets_and_timeouts_get_a_definite_answer_and_are_applied_once(
    shop: Shop, seed: int
) -> None:
    with campaign_on(shop.service, shop.hooks, shop.books, seed) as under:
        proxy = asyncio.run(retried(under, OPERATIONS))
        assert under.close_the_books() == []
        assert len(proxy.happened) == 10, "every mishap befell requests and answers"
        assert under.tally()["applied"] > OPERATIONS / 5


def test_no_operation_is_lost_or_applied_twice_when_processes_are_killed_and_paused_under_load(
    shop: Shop, seed: int
) -> None:
    with campaign_on(shop.service, shop.hooks, shop.books, seed) as under:
        fallen = asyncio.run(battered(under, SECONDS, hurry=True, least=APPLIED))
        under.minute_later()
        assert under.close_the_books() == []
        assert fallen.total() > 0
