"""A claim takes no more rows than its limit: the leases of the jobs are as long as a batch of this size may take.

A subquery with LIMIT and SKIP LOCKED that PostgreSQL runs again for each row of a join locks the next rows each time.
"""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from cuota.db.payout import sending
from cuota.db.plan import card_events, charges
from cuota.db.plan.card_events import NewEvent
from support.db.failing import failing
from support.db.statements import every_statement
from support.own_service import Own
from support.payouts import make_payout

LIMIT = 3
_CLAIMS = [
    (name, sql)
    for name, sql in every_statement()
    if re.search(r"\bSET\b", sql) and re.search(r"LIMIT [^()]*SKIP LOCKED", sql)
]


@pytest.mark.parametrize(("name", "sql"), _CLAIMS, ids=[name for name, _ in _CLAIMS])
def test_the_rows_of_a_claim_are_chosen_once(name: str, sql: str) -> None:
    chosen = re.search(r"\bAS (?:MATERIALIZED )?\((?:(?!\bSET\b).)*SKIP LOCKED", sql, re.DOTALL)
    assert chosen, f"{name}: choose the rows in a CTE (WITH due AS MATERIALIZED), so that the limit holds"


def test_the_rule_finds_the_claims() -> None:
    assert {"charges._CLAIM", "card_events._CLAIM", "sending._CLAIM", "outgoing._CLAIM"} <= {
        name for name, _ in _CLAIMS
    }


async def test_a_claim_of_card_events_takes_no_more_than_its_limit(own: Own) -> None:
    shop, now = own.auto_merchant, own.context.now()
    order = await shop.approved("100.00")
    for number in range(4 * LIMIT):
        ids = shop.merchant_id, UUID(order["orderId"])
        event = NewEvent(*ids, "sandbox", f"evt_{number}", "charge.changed", now)
        assert await card_events.store(own.context.pool, event, now)
    assert len(await card_events.claim(own.context.pool, now, LIMIT)) == LIMIT


async def test_a_claim_of_card_refunds_takes_no_more_than_its_limit(own: Own) -> None:
    for _ in range(2 * LIMIT):
        order = await own.auto_merchant.approved("100.00")
        assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    assert len(await charges.claim_refunds(own.context.pool, own.context.now(), LIMIT)) == LIMIT


async def test_a_claim_of_payouts_takes_no_more_than_its_limit(own: Own) -> None:
    for _ in range(2 * LIMIT):
        await make_payout(own.context, own.merchant.merchant_id)
    assert len(await sending.claim(own.context.pool, own.context.now(), LIMIT, "sandbox")) == LIMIT


async def test_if_the_claim_fails_for_one_merchant_the_card_refunds_of_the_others_are_claimed(
    own: Own, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "cuota.work")
    for shop in (own.merchant, own.auto_merchant):
        order = await shop.approved("100.00")
        await own.merchant.move(order, "capture", "100.00")
        assert (await shop.move(order, "refund", "100.00")).status_code == 200
    bad, good = own.merchant.merchant_id, own.auto_merchant.merchant_id
    async with failing(own, "card_refunds", "UPDATE", f"NEW.merchant_id = '{bad}'"):
        claimed = await charges.claim_refunds(own.context.pool, own.context.now(), 2 * LIMIT)
        assert {each.merchant_id for each in claimed} == {good}
