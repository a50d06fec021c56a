"""Stripe's events, including those that contain only a payment's id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.rails.card.protocol import CardEvent, CardEventKind, ChargeRequest, RefundRequest
from cuota.rails.card.rails import CardRails
from support.rails.processor import Bench, a_holder
from support.rails.promises import refund_of
from support.stripe.processor import StripeProcessor
from support.stripe.stand_in import signed

NEVER_OURS = "pi_made_in_the_dashboard"


async def paid(processor: StripeProcessor) -> ChargeRequest:
    holder = a_holder()
    asked = Bench(await processor.ready("pays", holder), holder).charge(50_00)
    assert (await processor.rail.charge(asked)).approved
    return asked


async def intent_of(processor: StripeProcessor, asked: ChargeRequest) -> dict[str, Any]:
    found = await processor.rail._find(asked.token, asked.key)
    assert found is not None
    return found


def ids(event: CardEvent | None) -> tuple[UUID | None, UUID | None, UUID | None]:
    assert event is not None
    return event.merchant_id, event.order_id, event.charge_id


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("created", CardEventKind.DISPUTE_OPENED, "needs_response"),
        ("updated", CardEventKind.DISPUTE_CHANGED, "under_review"),
        ("closed", CardEventKind.DISPUTE_CLOSED, "lost"),
    ],
)
async def test_a_dispute_has_its_order_although_stripe_names_only_the_payment(
    processor: StripeProcessor, name: str, kind: CardEventKind, status: str
) -> None:
    asked = await paid(processor)
    dispute = {
        "id": "dp_1", "object": "dispute", "amount": 50_00, "reason": "fraudulent", "status": status, "metadata": {},
        "payment_intent": (await intent_of(processor, asked))["id"],
    }  # fmt: skip
    event = await processor.rail.read_event(
        *signed(processor.stand_in.ledger.happened(f"charge.dispute.{name}", dispute))
    )
    assert ids(event) == (asked.merchant_id, asked.order_id, asked.key)
    assert event is not None
    assert (event.kind, event.reference, event.amount) == (kind, "dp_1", 50_00)
    assert (event.reason, event.status) == ("fraudulent", status)


async def test_a_refund_by_the_service_is_no_event_but_a_refund_from_stripe_s_dashboard_is_one(
    processor: StripeProcessor,
) -> None:
    asked = await paid(processor)
    start = len(processor.stand_in.ledger.events)
    assert (await processor.rail.refund(refund_of(asked, 10_00))).approved
    (ours,) = processor.stand_in.ledger.events[start:]
    assert await processor.rail.read_event(*signed(ours)) is None
    intent = await intent_of(processor, asked)
    await processor.stand_in.intents.refund([("payment_intent", intent["id"]), ("amount", "1500")])
    theirs = processor.stand_in.ledger.events[-1]
    event = await processor.rail.read_event(*signed(theirs))
    assert ids(event) == (asked.merchant_id, asked.order_id, asked.key)
    assert event is not None
    assert (event.kind, event.amount) == (CardEventKind.REFUNDED_ELSEWHERE, 15_00)
    assert event.reference == theirs["data"]["object"]["id"]


async def test_a_refund_that_the_bank_sent_back_names_our_refund(processor: StripeProcessor) -> None:
    asked = await paid(processor)
    refund: RefundRequest = refund_of(asked, 10_00)
    assert (await processor.rail.refund(refund)).approved
    made = processor.stand_in.ledger.events[-1]["data"]["object"]
    failed = processor.stand_in.ledger.happened(
        "refund.failed", {**made, "status": "failed", "failure_reason": "expired_or_canceled_card"}
    )
    event = await processor.rail.read_event(*signed(failed))
    assert ids(event) == (asked.merchant_id, asked.order_id, asked.key)
    assert event is not None
    assert (event.kind, event.refund_id, event.amount) == (CardEventKind.REFUND_FAILED, refund.key, 10_00)
    assert event.reason == "expired_or_canceled_card"


async def test_a_card_that_its_bank_replaced_keeps_its_token(processor: StripeProcessor) -> None:
    asked = await paid(processor)
    found = await processor.rail._stripe.v1.payment_methods.retrieve_async(asked.token.partition("/")[2])
    method = found.to_dict()
    method["card"]["last4"] = "4444"
    renewed = processor.stand_in.ledger.happened("payment_method.automatically_updated", method)
    event = await processor.rail.read_event(*signed(renewed))
    assert event is not None
    assert (event.kind, event.merchant_id, event.order_id) == (
        CardEventKind.CARD_UPDATED, asked.merchant_id, asked.order_id,
    )  # fmt: skip
    assert event.card is not None
    assert (event.card.token, event.card.last4) == (asked.token, "4444")


@pytest.mark.parametrize(
    ("kind", "thing"),
    [
        ("customer.created", {"id": "cus_1", "metadata": {}}),
        ("payment_intent.succeeded", {"id": NEVER_OURS, "metadata": {}}),
        ("payment_intent.succeeded", {"id": NEVER_OURS, "metadata": {"merchant_id": "7", "order_id": "8"}}),
        ("charge.dispute.created", {"id": "dp_2", "payment_intent": NEVER_OURS, "amount": 1, "metadata": {}}),
        ("refund.created", {"id": "re_2", "payment_intent": NEVER_OURS, "amount": 1, "metadata": None}),
        ("refund.created", {"id": "re_3", "payment_intent": None, "amount": 1, "metadata": {}}),
    ],
)
async def test_events_about_other_payments_are_ignored(
    processor: StripeProcessor, kind: str, thing: dict[str, Any]
) -> None:
    event = {"id": "evt_1", "type": kind, "created": 1_800_000_000, "data": {"object": thing}}
    assert await processor.rail.read_event(*signed(event)) is None


async def test_undelivered_events_are_listed_oldest_first_from_every_page(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.rails.card.stripe_listing.PAGE", 2)
    monkeypatch.setattr("cuota.rails.card.stripe_listing.MOST_PAGES", 100)
    since = datetime.now(UTC) - timedelta(seconds=1)
    charges = [await paid(processor) for _ in range(3)]
    assert (await processor.rail.refund(refund_of(charges[0], 10_00))).approved
    dispute = {
        "id": "dp_3", "amount": 50_00, "reason": "fraudulent", "status": "needs_response", "metadata": {},
        "payment_intent": (await intent_of(processor, charges[1]))["id"],
    }  # fmt: skip
    processor.stand_in.ledger.happened("charge.dispute.created", dispute)
    events = await processor.rail.events_since(since)
    mine = [event for event in events if event.charge_id in {asked.key for asked in charges}]
    assert [event.kind for event in mine].count(CardEventKind.CHARGE_CHANGED) == 3
    assert [event.kind for event in mine].count(CardEventKind.DISPUTE_OPENED) == 1
    assert len(mine) == 4
    assert [event.at for event in events] == sorted(event.at for event in events)
    again = {event.event_id for event in await processor.rail.events_since(since)}
    assert {event.event_id for event in events} <= again
    assert CardRails(processor.rail).active.name == "stripe"


async def test_of_many_events_a_call_returns_the_oldest_and_the_next_calls_the_rest(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.rails.card.stripe_listing.PAGE", 2)
    monkeypatch.setattr("cuota.rails.card.stripe_listing.MOST_PAGES", 2)
    asked = await paid(processor)
    intent = (await intent_of(processor, asked))["id"]
    # Other tests of this stand-in must not see these events, which are in the future.
    ledger = processor.stand_in.ledger
    monkeypatch.setattr(ledger, "events", list(ledger.events))
    begin = datetime.now(UTC) + timedelta(days=1)
    ids = []
    for number in range(-1, 11):
        dispute = {"id": f"dp_{number}", "amount": 1, "metadata": {}, "payment_intent": intent}
        event = ledger.happened("charge.dispute.updated", dispute)
        event["created"] = int(begin.timestamp()) + number
        ids.append(event["id"])
    seen: list[str] = []
    since = begin
    for _ in range(20):
        events = await processor.rail.events_since(since)
        assert 1 <= len(events) <= 4
        assert [event.at for event in events] == sorted(event.at for event in events)
        seen += [event.event_id for event in events if event.event_id not in seen]
        if events[-1].at <= since:
            break
        since = events[-1].at
    assert seen == ids[1:]


@pytest.mark.parametrize("limit", ["pages", "time"])
async def test_more_events_of_one_second_than_a_call_lists_do_not_hide_the_later_events(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr("cuota.rails.card.stripe_listing.PAGE", 2)
    if limit == "pages":
        monkeypatch.setattr("cuota.rails.card.stripe_listing.MOST_PAGES", 1)
    else:
        monkeypatch.setattr("cuota.rails.card.stripe_listing.ENOUGH", 0.0)
    intent = (await intent_of(processor, await paid(processor)))["id"]
    ledger = processor.stand_in.ledger
    monkeypatch.setattr(ledger, "events", list(ledger.events))
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    ids = []
    for second in (-1, 0, 0, 0, 0, 0, 1, 2, 2, 2, 3):
        dispute = {"id": "dp_1", "amount": 1, "metadata": {}, "payment_intent": intent}
        event = ledger.happened("charge.dispute.updated", dispute)
        event["created"] = int(begin.timestamp()) + second
        ids.append(event["id"])
    seen: set[str] = set()
    since, calls = begin, 0
    while True:
        calls += 1
        events = await processor.rail.events_since(since)
        seen |= {event.event_id for event in events}
        if events[-1].at <= since:
            break
        since = events[-1].at
    assert seen == set(ids[1:])
    # A call ends when it has an event that is later than the last call's events.
    assert calls >= 4


async def test_a_dispute_is_not_lost_while_stripe_does_not_answer(processor: StripeProcessor) -> None:
    from cuota.rails.unavailable import RailUnavailable

    asked = await paid(processor)
    dispute = {
        "id": "dp_4",
        "amount": 1,
        "metadata": {},
        "payment_intent": (await intent_of(processor, asked))["id"],
    }
    message = signed(processor.stand_in.ledger.happened("charge.dispute.created", dispute))
    with processor.lost_request(), pytest.raises(RailUnavailable):
        await processor.rail.read_event(*message)
    assert ids(await processor.rail.read_event(*message)) == (asked.merchant_id, asked.order_id, asked.key)
