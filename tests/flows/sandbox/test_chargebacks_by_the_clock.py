"""The disputed test card: its bank takes the payment back after a week, and the network decides."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeOutcome, DisputeReason, DisputeStatus
from cuota.core.refusal import Code, Refused
from cuota.db.dispute import disputes
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute import answer_dispute
from cuota.rails.card.protocol import CardEventKind, ChargebackReply
from support.makers import complete
from support.time.sandbox import Sandbox

CARD = "4000 0000 0000 2685"


async def disputed(sandbox: Sandbox, captured: str | None = "100.00") -> tuple[dict[str, Any], Dispute]:
    order = await sandbox.merchant.create("100.00")
    await complete(sandbox.service, sandbox.merchant.merchant_id, order, card=CARD)
    if captured is not None:
        assert (await sandbox.merchant.move(order, "capture", captured)).status_code == 200
    await sandbox.advance("8d")
    return order, await the_one(sandbox, order)


async def the_one(sandbox: Sandbox, order: dict[str, Any]) -> Dispute:
    (found,) = await disputes.of_order(
        sandbox.context.pool, sandbox.merchant.merchant_id, UUID(order["orderId"])
    )
    return found


async def agree(sandbox: Sandbox) -> None:
    assert (await verify(sandbox.context.pool)).disagreements == []


async def charges(sandbox: Sandbox) -> int:
    (row,) = await sandbox.fetch("SELECT count(*) AS n FROM charges WHERE state = 'succeeded'")
    return int(row["n"])


async def lines(sandbox: Sandbox) -> list[tuple[str, int]]:
    rows = await sandbox.fetch(
        "SELECT type, net FROM settlement_lines WHERE order_id IS NOT NULL ORDER BY number"
    )
    return [(row["type"], row["net"]) for row in rows]


async def test_a_chargeback_withholds_the_payment_and_pauses_the_plan(sandbox: Sandbox) -> None:
    order, dispute = await disputed(sandbox)
    assert (dispute.kind, dispute.reason, dispute.status) == (
        DisputeKind.CHARGEBACK, DisputeReason.NOT_RECEIVED, DisputeStatus.OPEN,
    )  # fmt: skip
    assert (dispute.amount, dispute.withheld) == (2500, 2500)
    assert await lines(sandbox) == [("capture", 10000), ("dispute_withheld", -2500)]
    # Only money that the network has not taken back can be refunded.
    refused = await sandbox.merchant.move(order, "refund", "75.01")
    assert refused.json()["code"] == "refund_exceeds_captured"
    await agree(sandbox)
    await sandbox.advance("7d")
    assert await charges(sandbox) == 1


async def test_without_an_answer_the_chargeback_is_lost_at_the_network_s_deadline_and_the_card_is_not_charged_again(
    sandbox: Sandbox,
) -> None:
    order, _ = await disputed(sandbox)
    await sandbox.advance("10d")
    dispute = await the_one(sandbox, order)
    assert (dispute.status, dispute.outcome) == (DisputeStatus.CLOSED, DisputeOutcome.LOST)
    assert (await sandbox.merchant.read(order))["refundedAmount"] == 25
    assert await lines(sandbox) == [
        ("capture", 10000), ("dispute_withheld", -2500), ("dispute_released", 2500), ("dispute_lost", -2500),
    ]  # fmt: skip
    await agree(sandbox)
    await sandbox.advance("40d")
    assert await charges(sandbox) == 1
    await agree(sandbox)


@pytest.mark.parametrize(
    ("text", "outcome", "refunded"),
    [
        ("winning_evidence: signed for by the consumer", DisputeOutcome.WON, 0),
        ("we sent it, we think", DisputeOutcome.LOST, 25),
    ],
)
async def test_evidence_is_sent_to_the_network_which_decides(
    sandbox: Sandbox, text: str, outcome: DisputeOutcome, refunded: int
) -> None:
    order, dispute = await disputed(sandbox)
    ids = sandbox.merchant.merchant_id, dispute.dispute_id
    sent = await answer_dispute.submit_evidence(sandbox.context, *ids, text)
    assert sent.status is DisputeStatus.UNDER_REVIEW
    with pytest.raises(Refused) as refused:
        await answer_dispute.decide_dispute(sandbox.context, *ids, for_consumer=False)
    assert refused.value.code is Code.DISPUTE_NOT_POSSIBLE
    await sandbox.advance("3d")
    done = await the_one(sandbox, order)
    assert (done.status, done.outcome) == (DisputeStatus.CLOSED, outcome)
    assert (await sandbox.merchant.read(order))["refundedAmount"] == refunded
    await agree(sandbox)


async def test_an_accepted_chargeback_is_lost_at_once(sandbox: Sandbox) -> None:
    order, dispute = await disputed(sandbox)
    ids = sandbox.merchant.merchant_id, dispute.dispute_id
    for _ in range(2):
        assert (await answer_dispute.accept_dispute(sandbox.context, *ids)).status is DisputeStatus.LOST
    await sandbox.advance("2d")
    done = await the_one(sandbox, order)
    assert (done.status, done.outcome) == (DisputeStatus.CLOSED, DisputeOutcome.LOST)
    assert (await sandbox.merchant.read(order))["refundedAmount"] == 25
    await agree(sandbox)


async def test_a_lost_chargeback_of_an_order_that_was_not_captured_voids_the_payment(
    sandbox: Sandbox,
) -> None:
    order, dispute = await disputed(sandbox, captured=None)
    assert dispute.withheld == 0
    refused = await sandbox.merchant.move(order, "void", "100.00")
    assert refused.json()["code"] == "chargeback_open"
    await sandbox.advance("30d")
    # The authorization ended while the chargeback was open, so the rest was voided afterwards.
    after = await sandbox.merchant.read(order)
    assert (after["voidedAmount"], after["paymentState"]) == (100, "EXPIRED")
    (row,) = await sandbox.fetch("SELECT count(*) AS n FROM card_refunds")
    assert row["n"] == 0
    await agree(sandbox)


async def test_a_repeated_or_late_event_books_nothing_twice(sandbox: Sandbox) -> None:
    order, _ = await disputed(sandbox)
    await sandbox.advance("10d")
    before = await sandbox.fetch("SELECT count(*) AS n FROM transfers")
    async with sandbox.context.pool.session() as session:
        await session.execute(
            "UPDATE card_events SET applied_at = NULL, try_at = now() WHERE kind LIKE 'dispute.%'"
        )
    await sandbox.advance("1d")
    assert await sandbox.fetch("SELECT count(*) AS n FROM transfers") == before
    assert (await the_one(sandbox, order)).outcome is DisputeOutcome.LOST
    await agree(sandbox)


async def dispute_events(sandbox: Sandbox) -> list[tuple[str, str]]:
    rows = await sandbox.fetch("SELECT kind, status FROM card_events WHERE kind LIKE 'dispute.%' ORDER BY at")
    return [(row["kind"], row["status"]) for row in rows]


async def reply_of(
    sandbox: Sandbox, dispute: Dispute, text: str, *, accepts: bool = False
) -> ChargebackReply:
    (row,) = await sandbox.fetch("SELECT card_token FROM charges WHERE charge_id = $1", dispute.charge_id)
    assert dispute.reference is not None
    return ChargebackReply(uuid4(), dispute.reference, row["card_token"], text, accepts=accepts)


async def test_an_answer_after_the_end_changes_nothing_at_the_simulated_processor(sandbox: Sandbox) -> None:
    order, dispute = await disputed(sandbox)
    ids = sandbox.merchant.merchant_id, dispute.dispute_id
    await answer_dispute.submit_evidence(sandbox.context, *ids, "winning_evidence")
    await sandbox.advance("3d")
    assert (await the_one(sandbox, order)).outcome is DisputeOutcome.WON
    rails = sandbox.context.rails.card
    before = await rails.events_since("sandbox", dispute.opened_at - timedelta(days=30))
    await rails.answer_chargeback(await reply_of(sandbox, dispute, "", accepts=True))
    assert await rails.events_since("sandbox", dispute.opened_at - timedelta(days=30)) == before
    assert await dispute_events(sandbox) == [("dispute.opened", "needs_response"), ("dispute.closed", "won")]


async def test_evidence_after_the_network_s_deadline_has_no_effect(sandbox: Sandbox) -> None:
    order, dispute = await disputed(sandbox)
    await sandbox.advance("10d")
    rails = sandbox.context.rails.card
    await rails.answer_chargeback(await reply_of(sandbox, dispute, "winning_evidence"))
    events = await rails.events_since("sandbox", dispute.opened_at - timedelta(days=30))
    closed = [each.status for each in events if each.kind is CardEventKind.DISPUTE_CLOSED]
    assert closed == ["lost"]
    assert (await the_one(sandbox, order)).outcome is DisputeOutcome.LOST
