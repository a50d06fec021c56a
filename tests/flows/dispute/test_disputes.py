"""A consumer's dispute: the money is withheld, the plan is paused, and the dispute's end moves the money once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.dispute.dispute import Dispute, DisputeOutcome, DisputeParty, DisputeReason, DisputeStatus
from cuota.core.refusal import Code, Refused
from cuota.db.dispute import disputes
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute import answer_dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.payout.settle_movements import settle_merchant
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.own_service import Own

_LINES = "SELECT type, net FROM settlement_lines WHERE order_id = $1 ORDER BY number"
_PLAN = "SELECT number, amount, charge_at, due_on, charge_id FROM installments WHERE order_id = $1 ORDER BY number"


async def opened(own: Own, order: dict[str, Any], cents: int) -> Dispute:
    ids = own.merchant.merchant_id, UUID(order["orderId"])
    return await open_dispute(own.context, *ids, DisputeReason.NOT_RECEIVED, cents, "Nothing came.")


async def captured(own: Own, amount: str = "100.00") -> dict[str, Any]:
    order = await own.merchant.approved(amount)
    await own.merchant.move(order, "capture", amount)
    return order


async def lines(own: Own, order: dict[str, Any]) -> list[tuple[str, int]]:
    await publish_events(own.context)
    await settle_merchant(own.context, own.merchant.merchant_id)
    return [(row["type"], row["net"]) for row in await own.context.pool.fetch(_LINES, UUID(order["orderId"]))]


async def plan(own: Own, order: dict[str, Any]) -> list[Any]:
    return await own.context.pool.fetch(_PLAN, UUID(order["orderId"]))


async def again(own: Own, dispute: Dispute) -> Dispute:
    found = await disputes.find(own.context.pool, own.merchant.merchant_id, dispute.dispute_id)
    assert found is not None
    return found.dispute


async def agree(own: Own) -> None:
    assert (await verify(own.context.pool)).disagreements == []


async def test_an_open_dispute_withholds_the_amount_and_pauses_the_plan(own: Own) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    assert dispute.status is DisputeStatus.OPEN
    assert [row["charge_at"] for row in await plan(own, order)] == [None] * 4
    assert await lines(own, order) == [("capture", 10000), ("dispute_withheld", -4000)]
    await agree(own)


async def test_a_lost_dispute_is_refunded_only_when_nobody_can_appeal_any_more(own: Own) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    ids = own.merchant.merchant_id, dispute.dispute_id
    assert (
        await answer_dispute.decide_dispute(own.context, *ids, for_consumer=True)
    ).status is DisputeStatus.LOST
    own.service.clock.ahead += timedelta(days=9)
    assert await settle_due_disputes(own.context) == 0
    assert (await own.merchant.read(order))["refundedAmount"] == 0
    own.service.clock.ahead += timedelta(days=1)
    assert await settle_due_disputes(own.context) == 1
    assert (await own.merchant.read(order))["refundedAmount"] == 40
    done = await again(own, dispute)
    assert (done.status, done.outcome, done.withheld) == (DisputeStatus.CLOSED, DisputeOutcome.LOST, 0)
    assert await settle_due_disputes(own.context) == 0
    assert await lines(own, order) == [
        ("capture", 10000),
        ("dispute_withheld", -4000),
        ("dispute_released", 4000),
        ("dispute_lost", -4000),
    ]
    await agree(own)


async def test_a_won_dispute_releases_the_money_and_moves_the_due_dates_of_the_payments(own: Own) -> None:
    order = await captured(own)
    before = [row["due_on"] for row in await plan(own, order)]
    dispute = await opened(own, order, 10000)
    ids = own.merchant.merchant_id, dispute.dispute_id
    await answer_dispute.submit_evidence(own.context, *ids, "It was delivered.")
    await answer_dispute.decide_dispute(own.context, *ids, for_consumer=False)
    own.service.clock.ahead += timedelta(days=10)
    assert await settle_due_disputes(own.context) == 1
    after = await plan(own, order)
    assert [row["due_on"] for row in after[1:]] == [day + timedelta(days=10) for day in before[1:]]
    assert all(row["charge_at"] is not None for row in after[1:])
    assert await lines(own, order) == [
        ("capture", 10000), ("dispute_withheld", -10000), ("dispute_released", 10000),
    ]  # fmt: skip
    await agree(own)


async def test_a_merchant_that_does_not_answer_gets_a_reminder_and_then_loses(own: Own) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    own.service.clock.ahead += timedelta(days=11)
    assert await settle_due_disputes(own.context) == 1
    own.service.clock.ahead += timedelta(days=3)
    assert await settle_due_disputes(own.context) == 1
    assert (await again(own, dispute)).status is DisputeStatus.LOST
    await agree(own)


async def test_an_accepted_dispute_is_final_and_refunded_at_once(own: Own) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    ids = own.merchant.merchant_id, dispute.dispute_id
    assert (await answer_dispute.accept_dispute(own.context, *ids)).status is DisputeStatus.LOST
    assert (await answer_dispute.accept_dispute(own.context, *ids)).status is DisputeStatus.LOST
    with pytest.raises(Refused, match="final"):
        await answer_dispute.appeal_dispute(own.context, *ids, DisputeParty.MERCHANT, "No!")
    assert await settle_due_disputes(own.context) == 1
    assert (await own.merchant.read(order))["refundedAmount"] == 40
    await agree(own)


@pytest.mark.parametrize("for_consumer", [True, False])
async def test_the_losing_side_can_appeal_once_and_the_second_decision_is_final(
    *, own: Own, for_consumer: bool
) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    ids = own.merchant.merchant_id, dispute.dispute_id
    loser = DisputeParty.MERCHANT if for_consumer else DisputeParty.CONSUMER
    winner = DisputeParty.CONSUMER if for_consumer else DisputeParty.MERCHANT
    await answer_dispute.decide_dispute(own.context, *ids, for_consumer=for_consumer)
    with pytest.raises(Refused, match="lost"):
        await answer_dispute.appeal_dispute(own.context, *ids, winner, "Me too")
    await answer_dispute.appeal_dispute(own.context, *ids, loser, "Look again")
    own.service.clock.ahead += timedelta(days=30)
    assert await settle_due_disputes(own.context) == 0
    await answer_dispute.decide_dispute(own.context, *ids, for_consumer=for_consumer)
    with pytest.raises(Refused, match="final"):
        await answer_dispute.appeal_dispute(own.context, *ids, loser, "And again")
    assert await settle_due_disputes(own.context) == 1
    assert (await own.merchant.read(order))["refundedAmount"] == (40 if for_consumer else 0)
    await agree(own)


async def test_a_refund_during_a_dispute_reduces_the_dispute_and_nobody_is_credited_twice(own: Own) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    assert (await own.merchant.move(order, "refund", "15.00")).status_code == 200
    assert (await again(own, dispute)).withheld == 2500
    assert (await own.merchant.move(order, "refund", "25.00")).status_code == 200
    done = await again(own, dispute)
    assert (done.status, done.outcome) == (DisputeStatus.CLOSED, DisputeOutcome.RESOLVED)
    assert (await own.merchant.read(order))["refundedAmount"] == 40
    assert await lines(own, order) == [
        ("capture", 10000), ("dispute_withheld", -4000), ("refund", -1500), ("dispute_released", 1500),
        ("refund", -2500), ("dispute_released", 2500),
    ]  # fmt: skip
    await agree(own)


async def test_a_withdrawn_dispute_releases_all_withheld_money(own: Own) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    ids = own.merchant.merchant_id, dispute.dispute_id
    for _ in range(2):
        done = await answer_dispute.withdraw_dispute(own.context, *ids)
        assert (done.status, done.outcome) == (DisputeStatus.CLOSED, DisputeOutcome.WITHDRAWN)
    await agree(own)


@pytest.mark.parametrize("cents", [0, -1, 10001])
async def test_only_a_captured_amount_can_be_disputed(own: Own, cents: int) -> None:
    order = await captured(own)
    with pytest.raises(Refused) as refused:
        await opened(own, order, cents)
    assert refused.value.code is Code.DISPUTE_NOT_POSSIBLE
    await agree(own)


async def test_there_is_one_open_dispute_for_each_order(own: Own) -> None:
    order = await captured(own)
    await opened(own, order, 4000)
    with pytest.raises(Refused, match="open already"):
        await opened(own, order, 1000)


async def test_another_merchants_dispute_is_not_found(own: Own) -> None:
    dispute = await opened(own, await captured(own), 4000)
    with pytest.raises(Refused) as refused:
        await answer_dispute.accept_dispute(own.context, own.auto_merchant.merchant_id, dispute.dispute_id)
    assert refused.value.code is Code.DISPUTE_NOT_FOUND


async def test_a_return_notice_holds_the_next_payment_until_the_refund(own: Own) -> None:
    order = await captured(own)
    before = await plan(own, order)
    ids = own.merchant.merchant_id, UUID(order["orderId"])
    notice = await notice_return(own.context, *ids, "UPS", "1Z999")
    assert await notice_return(own.context, *ids, "UPS", "1Z999") == notice
    held = await plan(own, order)
    assert held[1]["due_on"] > before[1]["due_on"]
    assert [row["due_on"] for row in held[2:]] == [row["due_on"] for row in before[2:]]
    await own.merchant.move(order, "refund", "10.00")
    assert [row["due_on"] for row in await plan(own, order)] == [row["due_on"] for row in before]
    await agree(own)


async def test_the_merchant_s_dispute_rate_is_a_fact_in_the_next_decision(own: Own) -> None:
    order = await captured(own)
    await captured(own)
    await opened(own, order, 4000)
    await lines(own, order)
    after = await own.merchant.approved("10.00")
    (row,) = await own.context.pool.fetch(
        "SELECT inputs -> 'merchant_disputes' AS fact FROM decisions WHERE order_id = $1",
        UUID(after["orderId"]),
    )
    assert json.loads(row["fact"]) == {"captures": 2, "disputes": 1}


# A CHECK refuses an amount below the withheld amount, so the test changes both.
@pytest.mark.parametrize("change", ["withheld = 3999", "amount = 4001", "amount = 3999, withheld = 3999"])
async def test_one_altered_cent_of_a_dispute_is_found(own: Own, change: str) -> None:
    dispute = await opened(own, await captured(own), 4000)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(f"UPDATE disputes SET {change} WHERE dispute_id = $1", dispute.dispute_id)
    assert (await verify(own.context.pool)).disagreements


@pytest.mark.parametrize("posting", ["dispute_withheld", "dispute_released", "dispute_lost"])
@pytest.mark.parametrize("cents", [1, -1])
async def test_one_altered_cent_in_the_ledger_of_a_dispute_is_found(
    own: Own, posting: str, cents: int
) -> None:
    order = await captured(own)
    dispute = await opened(own, order, 4000)
    await answer_dispute.accept_dispute(own.context, own.merchant.merchant_id, dispute.dispute_id)
    await settle_due_disputes(own.context)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            "UPDATE transfers SET amount = amount + $2 WHERE posting = $1 AND number = (SELECT min(number) FROM transfers WHERE posting = $1)",
            posting,
            cents,
        )
    assert (await verify(own.context.pool)).disagreements
