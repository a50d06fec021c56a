"""Events about disputes and return notices: each body follows the contract, and is the same each time it is read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from cuota.core.dispute.dispute import DisputeParty
from cuota.flows.dispute.answer_dispute import (
    accept_dispute,
    appeal_dispute,
    submit_evidence,
    withdraw_dispute,
)
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.contract import read_json
from support.disputes import captured, charged_back, decided, disputed, network_decides, paid_twice
from support.own_service import Own
from web.api.test_events import feed


async def told(own: Own, order: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the order's events since its capture. Check that each event follows the contract, in the feed and by
    itself."""
    await publish_events(own.context)
    events = [each for each in await feed(own.merchant) if each.get("orderId") == order["orderId"]]
    for event in events:
        answer = await own.merchant.http.get(f"/events/{event['id']}")
        assert own.service.contract.check_event(answer.content) == read_json(answer.content) == event
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    return events[3:]


def said(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["type"], each["amount"], (each.get("dispute") or {}).get("status")) for each in events]


async def test_every_step_of_a_dispute_is_an_event_with_the_status_after_it(own: Own) -> None:
    order = await captured(own.merchant)
    dispute = await disputed(own.merchant, order, 4000)
    ids = own.merchant.merchant_id, dispute.dispute_id
    own.service.clock.ahead += timedelta(days=11)
    await settle_due_disputes(own.context)
    await submit_evidence(own.context, *ids, "It came.")
    await decided(own.merchant, dispute, for_consumer=False)
    await appeal_dispute(own.context, *ids, DisputeParty.CONSUMER, "It did not.")
    await submit_evidence(own.context, *ids, "It did.")
    await decided(own.merchant, dispute, for_consumer=True)
    await settle_due_disputes(own.context)
    events = await told(own, order)
    assert said(events) == [
        ("dispute.opened", 40, "open"),
        ("dispute.evidence_due", 40, "open"),
        ("dispute.submitted", 40, "under_review"),
        ("dispute.won", 40, "won"),
        ("dispute.appealed", 40, "appealed"),
        ("dispute.submitted", 40, "appealed"),
        ("dispute.lost", 40, "lost"),
        ("refund.completed", 40, None),
        ("dispute.closed", 0, "closed"),
    ]
    assert events[7]["disputeId"] == str(dispute.dispute_id)
    assert events[8]["dispute"]["outcome"] == "lost"
    assert [each["dispute"].get("outcome") for each in events[:7]] == [None] * 7


async def test_the_event_about_a_dispute_s_end_has_the_released_amount(own: Own) -> None:
    order = await captured(own.merchant)
    ids = own.merchant.merchant_id
    first = await disputed(own.merchant, order, 4000)
    await withdraw_dispute(own.context, ids, first.dispute_id)
    await disputed(own.merchant, order, 3000)
    assert (await own.merchant.move(order, "refund", "30.00")).status_code == 200
    events = await told(own, order)
    assert said(events) == [
        ("dispute.opened", 40, "open"),
        ("dispute.closed", 40, "closed"),
        ("dispute.opened", 30, "open"),
        ("refund.completed", 30, None),
        ("dispute.closed", 0, "closed"),
    ]
    assert [events[1]["dispute"]["outcome"], events[4]["dispute"]["outcome"]] == ["withdrawn", "resolved"]
    assert "disputeId" not in events[3]


async def test_the_events_of_chargebacks_follow_the_contract(own: Own) -> None:
    won = await captured(own.merchant)
    chargeback = await charged_back(own.merchant, won, 2500)
    await network_decides(own.merchant, won, chargeback, for_consumer=False)
    assert said(await told(own, won)) == [
        ("dispute.opened", 25, "open"), ("dispute.won", 25, "won"), ("dispute.closed", 25, "closed"),
    ]  # fmt: skip
    lost = await captured(own.merchant)
    chargeback = await charged_back(own.merchant, lost, 2500)
    await accept_dispute(own.context, own.merchant.merchant_id, chargeback.dispute_id)
    await network_decides(own.merchant, lost, chargeback, for_consumer=True)
    events = await told(own, lost)
    assert said(events) == [
        ("dispute.opened", 25, "open"), ("dispute.lost", 25, "lost"), ("refund.completed", 25, None),
        ("dispute.closed", 0, "closed"),
    ]  # fmt: skip
    assert events[2]["disputeId"] == events[0]["dispute"]["disputeId"] == str(chargeback.dispute_id)
    assert events[0]["dispute"]["kind"] == "chargeback"


async def test_the_events_of_a_chargeback_name_its_payment_and_what_its_opening_released(own: Own) -> None:
    order = await paid_twice(own.merchant)
    assert (await own.merchant.move(order, "capture", "100.00")).status_code == 200
    await disputed(own.merchant, order, 9000)
    chargeback = await charged_back(own.merchant, order, 2500, payment=2)
    await network_decides(own.merchant, order, chargeback, for_consumer=True)
    about = [event["dispute"] for event in await told(own, order) if "dispute" in event]
    assert [(each["kind"], each.get("payment"), each.get("released")) for each in about] == [
        ("dispute", None, None), ("chargeback", 2, 15), ("chargeback", 2, None), ("chargeback", 2, None),
    ]  # fmt: skip


async def test_a_return_notice_is_an_event_with_the_tracking_number(own: Own) -> None:
    order = await captured(own.merchant)
    await notice_return(own.context, own.merchant.merchant_id, UUID(order["orderId"]), "UPS", "1Z999")
    (event,) = await told(own, order)
    assert (event["type"], event["amount"]) == ("return.noticed", 100)
    assert (event["return"]["carrier"], event["return"]["trackingNumber"]) == ("UPS", "1Z999")
