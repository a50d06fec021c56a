"""After money was moved, what fails to be written turns no answer into an error: nobody is told to try again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cuota.core.dispute.dispute import DisputeStatus
from cuota.db.dispute import disputes
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.clear_card import finish_clearings
from cuota.rails.card_network import LEASE
from cuota.work.due_orders import settle_due_orders
from support.db.failing import failing
from support.disputes import captured, disputed
from support.own_service import Own
from support.pages.consumer import FAILS_LATER, NEW_CARD, Consumer, Plan, new_number
from support.pages.operator_staff import OperatorStaff
from support.pages.staff import Staff
from support.pages.visitor import Visitor
from support.virtual_card import virtual_order


@pytest.fixture
async def consumer(own: Own) -> AsyncIterator[Consumer]:
    NEW_CARD["card_number"] = new_number()
    async with own.service.client() as http:
        yield Consumer(http, own.service, "3124412345")


async def succeeded(own: Own) -> int:
    """The number of charges that a card paid, in our records. The ledger agrees with them."""
    assert (await verify(own.context.pool)).disagreements == []
    row = await own.context.pool.fetchrow("SELECT count(*) AS paid FROM charges WHERE state = 'succeeded'")
    assert row is not None
    return int(row["paid"])


async def at_the_processor(own: Own) -> int:
    """The number of charges that a card paid, at the card's processor."""
    row = await own.context.pool.fetchrow(
        "SELECT count(*) AS paid FROM card_simulator.charges WHERE approved"
    )
    assert row is not None
    return int(row["paid"])


async def entered(own: Own, consumer: Consumer, card: str = NEW_CARD["card_number"]) -> Plan:
    plan = await consumer.buy_at(own.auto_merchant, card=card or new_number())
    await consumer.enter()
    return plan


async def test_a_payment_is_said_to_be_made_when_its_counts_cannot_be_written(
    own: Own, consumer: Consumer
) -> None:
    plan = await entered(own, consumer)
    # The attempt itself is counted before the card is charged.
    async with failing(own, "consumer_asks", "UPDATE", "NEW.last_at = OLD.last_at"):
        page = await consumer.pay(plan)
    assert (page.status, "Your payment went through" in page.text) == (200, True)
    assert await succeeded(own) == 2


async def test_a_payment_whose_answer_cannot_be_recorded_is_said_to_be_in_progress_and_charged_once(
    own: Own, consumer: Consumer
) -> None:
    plan = await entered(own, consumer)
    async with failing(own, "charges", "UPDATE"):
        page = await consumer.pay(plan)
        assert (page.status, "A payment is being made right now" in page.text) == (200, True)
    own.service.clock.ahead += LEASE
    await settle_due_orders(own.context)
    page = await consumer.open(plan.path)
    assert "Paid" in page.text
    assert (await succeeded(own), await at_the_processor(own)) == (2, 2)


async def test_what_was_paid_is_told_when_the_next_payment_cannot_begin(own: Own, consumer: Consumer) -> None:
    plan = await entered(own, consumer)
    async with failing(own, "charges", "INSERT", "NEW.installment = 3"):
        page = await consumer.pay(plan, "all=1")
    assert page.status == 200
    assert "Your card paid part of this. We could not finish the rest" in page.text
    assert await succeeded(own) == 2


async def test_a_changed_card_is_said_to_be_changed_when_it_cannot_be_charged_now(
    own: Own, consumer: Consumer
) -> None:
    plan = await entered(own, consumer, FAILS_LATER)
    async with own.service.clock.moved(days=15):
        await plan.collected()
        await consumer.open(f"{plan.path}/card")
        async with failing(own, "charges", "INSERT"):
            page = await consumer.send("card", **NEW_CARD)
        assert (page.status, "Your new card" in page.text) == (200, True)
        await settle_due_orders(own.context)
        assert await succeeded(own) == 2


@pytest.mark.parametrize(("table", "event"), [("remembered_browsers", "INSERT"), ("charges", "UPDATE")])
async def test_a_checkout_that_was_paid_never_ends_with_an_error(own: Own, table: str, event: str) -> None:
    order = await own.auto_merchant.create("100.00")
    async with own.service.client() as http:
        visitor = Visitor(http)
        async with failing(own, table, event):
            page = await visitor.buy(order)
            assert page.status == 200
            assert page.heading in {"Your order is confirmed", "Your payment is on its way"}
        own.service.clock.ahead += LEASE
        await settle_due_orders(own.context)
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Approved"
    assert (await succeeded(own), await at_the_processor(own)) == (1, 1)


async def test_a_capture_by_card_is_answered_when_the_network_cannot_note_that_it_was_applied(
    own: Own,
) -> None:
    virtual = await virtual_order(own.merchant)
    allowed = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    async with failing(own, "issuing_simulator.clearings", "UPDATE"):
        answer = await virtual.clear(allowed, "capture", "60.00", "ship-1")
    assert answer.status_code == 200
    own.service.clock.ahead += LEASE * 2
    assert await finish_clearings(own.context) == 1
    assert ((await virtual.book())["captured"], (await virtual.book())["held"]) == (6000, 0)
    assert (await own.merchant.read(virtual.created))["capturedAmount"] == 60.0


async def test_a_refused_movement_is_refused_when_its_event_cannot_be_written(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    async with failing(own, "events", "INSERT"):
        answer = await own.merchant.move(order, "capture", "100.01")
    assert (answer.status_code, answer.json()["code"]) == (422, "capture_exceeds_authorized")


async def test_an_action_is_answered_when_the_answer_cannot_be_stored_for_its_key(own: Own) -> None:
    body, key = {"url": "https://shop.example/hooks"}, {"Idempotency-Key": "one"}
    async with failing(own, "idempotency_keys", "UPDATE"):
        answer = await own.merchant.http.post("/webhook-endpoints", json=body, headers=key)
    assert answer.status_code == 200
    assert answer.json()["secret"].startswith("whsec_")


async def test_an_adjustment_is_said_to_be_booked_when_the_merchants_log_cannot_be_written(own: Own) -> None:
    async with own.service.client() as http:
        operator, end = OperatorStaff(http, own.service), str(own.merchant.merchant_id)
        await operator.enter()
        await operator.open(f"/operator/merchants/{end}")
        async with failing(own, "audit_log", "INSERT"):
            page = await operator.press(end, do="adjust", amount="-5.00", reason="a fee of 2025")
    assert (page.status, "The correction is booked" in page.text) == (200, True)


async def test_a_dispute_is_accepted_only_together_with_an_entry_of_the_audit_log(own: Own) -> None:
    dispute = await disputed(own.merchant, await captured(own.merchant), 4000)
    async with own.service.client() as http:
        staff = Staff(http, own.merchant)
        await staff.enter()
        await staff.open(f"/desk/disputes/{dispute.dispute_id}")
        async with failing(own, "audit_log", "INSERT"):
            page = await staff.press("accept", reason="The parcel was lost.")
        assert page.status == 503
        found = await disputes.find(own.context.pool, own.merchant.merchant_id, dispute.dispute_id)
        assert found is not None
        assert found.dispute.status is DisputeStatus.OPEN
        await staff.open(f"/desk/disputes/{dispute.dispute_id}")
        async with failing(own, "disputes", "UPDATE"):
            assert (await staff.press("accept", reason="The parcel was lost.")).status == 503
    async with own.owner() as owner:
        assert await owner.fetch("SELECT action FROM audit_log WHERE action LIKE 'dispute.%'") == [
            ("dispute.accept",)
        ]
