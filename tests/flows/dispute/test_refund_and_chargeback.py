"""A refund and a chargeback of the same payment: the consumer gets the money once, and nothing stays owed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cuota.db.plan import charges
from cuota.db.plan.charges import failed_refunds
from cuota.db.verify.recalculate import verify
from cuota.flows.order.return_money import return_money
from cuota.rails.card.protocol import CardEventKind
from support.flows.processor import charged_back, happens
from support.own_service import Own

BALANCES = """SELECT account, sum(cents)::bigint AS cents FROM (SELECT debit AS account, amount AS cents FROM transfers
    UNION ALL SELECT credit, -amount FROM transfers) t GROUP BY 1 HAVING sum(cents) <> 0"""


async def disputed(
    own: Own,
    order: dict[str, Any],
    *statuses: str,
    cents: int = 2500,
    reason: str = "credit_not_processed",
) -> None:
    """Open and close a chargeback of the first payment."""
    for status in statuses:
        await charged_back(own, order, f"dp_{cents}", cents, status, reason)


async def refund_states(own: Own) -> list[tuple[str, int]]:
    rows = await own.context.pool.fetch("SELECT state, amount FROM card_refunds ORDER BY created_at")
    return [(row["state"], row["amount"]) for row in rows]


async def nothing_is_owed(own: Own) -> None:
    found = {row["account"]: row["cents"] for row in await own.context.pool.fetch(BALANCES)}
    assert "consumer_refund_due" not in found
    assert "losses" not in found
    assert await failed_refunds(own.context.pool, 10) == []
    assert (await verify(own.context.pool)).disagreements == []


async def later(own: Own) -> None:
    """Let the time pass in which a waiting refund is tried again, and try it."""
    own.service.clock.ahead += timedelta(hours=2)
    await return_money(own.context)


async def refunded(own: Own, *, sent: bool) -> dict[str, Any]:
    """Return an order that is refunded whole. Its first payment of 25.00 goes back to the card."""
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    assert not sent or await return_money(own.context) == 1
    return order


async def failed(own: Own, order: dict[str, Any]) -> None:
    [row] = await own.context.pool.fetch("SELECT card_refund_id FROM card_refunds")
    await happens(
        own, order, CardEventKind.REFUND_FAILED, refund_id=row["card_refund_id"], reason="account_closed"
    )


async def test_a_failed_refund_is_no_longer_owed_after_a_lost_chargeback_of_its_payment(own: Own) -> None:
    order = await refunded(own, sent=True)
    await failed(own, order)
    await disputed(own, order, "needs_response", "lost")
    assert await refund_states(own) == [("charged_back", 2500)]
    await nothing_is_owed(own)


async def test_a_refund_that_fails_after_the_lost_chargeback_is_not_owed(own: Own) -> None:
    order = await refunded(own, sent=True)
    await disputed(own, order, "needs_response", "lost")
    await failed(own, order)
    assert await refund_states(own) == [("charged_back", 2500)]
    await nothing_is_owed(own)


@pytest.mark.parametrize("claimed", [False, True])
async def test_a_refund_waits_while_a_chargeback_of_its_payment_is_open_and_is_not_sent_if_the_chargeback_is_lost(
    own: Own, *, claimed: bool
) -> None:
    order = await refunded(own, sent=False)
    await disputed(own, order, "needs_response")
    if claimed:
        assert await return_money(own.context) == 1
    assert await refund_states(own) == [("pending", 2500)]
    await disputed(own, order, "lost")
    await later(own)
    assert await refund_states(own) == [("charged_back", 2500)]
    await nothing_is_owed(own)


async def test_a_refund_that_waited_for_a_chargeback_is_sent_if_the_shop_won(own: Own) -> None:
    order = await refunded(own, sent=False)
    await disputed(own, order, "needs_response")
    assert await return_money(own.context) == 1
    await disputed(own, order, "won")
    await later(own)
    assert await refund_states(own) == [("succeeded", 2500)]
    await nothing_is_owed(own)


async def owed(own: Own) -> list[int]:
    assert (await verify(own.context.pool)).disagreements == []
    return [each.amount for each in await failed_refunds(own.context.pool, 10)]


async def test_a_failed_refund_stays_owed_if_the_bank_took_back_the_rest_of_the_payment(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "90.00")).status_code == 200
    assert await return_money(own.context) == 1
    await failed(own, order)
    await disputed(own, order, "needs_response", "lost", cents=1000, reason="fraudulent")
    assert await refund_states(own) == [("failed", 1500)]
    assert await owed(own) == [1500]


async def test_of_a_failed_refund_only_what_the_chargeback_did_not_return_is_owed(own: Own) -> None:
    order = await refunded(own, sent=True)
    await failed(own, order)
    await disputed(own, order, "needs_response", "lost", cents=2400)
    assert await owed(own) == [100]
    await disputed(own, order, "needs_response", "lost", cents=100)
    assert await owed(own) == []
    await nothing_is_owed(own)


async def test_of_a_waiting_refund_only_what_the_chargeback_did_not_return_is_sent(own: Own) -> None:
    order = await refunded(own, sent=False)
    await disputed(own, order, "needs_response", "lost", cents=2499, reason="fraudulent")
    await later(own)
    assert await refund_states(own) == [("succeeded", 2500)]
    [row] = await own.context.pool.fetch("SELECT amount FROM card_simulator.refunds")
    assert row["amount"] == 1
    await nothing_is_owed(own)


async def test_a_chargeback_about_a_refund_that_did_not_arrive_does_not_take_the_money_from_the_shop_again(
    own: Own,
) -> None:
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "85.00")).status_code == 200
    await disputed(own, order, "needs_response", "lost", cents=1000)
    await later(own)
    assert await refund_states(own) == [("charged_back", 1000)]
    [row] = await own.context.pool.fetch("SELECT captured - refunded - charged_back AS kept FROM orders")
    assert row["kept"] == 1500
    await nothing_is_owed(own)


async def test_a_refund_that_was_claimed_and_not_sent_is_not_sent_after_a_lost_chargeback(own: Own) -> None:
    order = await refunded(own, sent=False)
    await disputed(own, order, "needs_response")
    # A worker claims the refund, and dies before it asks the rail.
    assert len(await charges.claim_refunds(own.context.pool, own.context.now(), 10)) == 1
    await later(own)
    await disputed(own, order, "lost")
    await later(own)
    assert await refund_states(own) == [("charged_back", 2500)]
    await nothing_is_owed(own)


async def test_a_refund_that_the_previous_release_may_have_sent_is_not_taken_for_unsent(own: Own) -> None:
    order = await refunded(own, sent=False)
    await disputed(own, order, "needs_response")
    assert await return_money(own.context) == 1
    # The previous release claims the waiting refund: it moves only `try_at`. Then it asks the rail, and dies.
    await own.context.pool.fetch("UPDATE card_refunds SET try_at = try_at + interval '1 minute'")
    await disputed(own, order, "lost")
    assert await refund_states(own) == [("pending", 2500)]
