"""A virtual card at the merchant's card processor: its requests change the order, its plan and the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import httpx
import pytest

from cuota.db.verify.recalculate import VerifyReport, _verify_merchant
from cuota.flows.checkout.issue_card import tell_limits
from cuota.rails.card_network import LEASE
from cuota.web.app import make_app
from support.makers import Merchant, Running
from support.virtual_card import Virtual, ask, virtual_order


async def _agree(virtual: Virtual) -> None:
    report = VerifyReport()
    pool, merchant_id = virtual.shop.service.context.pool, virtual.shop.merchant_id
    await _verify_merchant(pool, merchant_id, report, lambda: None)
    assert report.disagreements == []


async def test_a_card_is_authorized_captured_and_refunded_and_the_order_changes_accordingly(
    merchant: Merchant,
) -> None:
    virtual = await virtual_order(merchant)
    card = await virtual.card()
    authorized = await virtual.authorize(card, "100.00", merchantId=str(merchant.merchant_id))
    assert (authorized["approved"], authorized["reason"]) == (True, None)
    name = authorized["authorizationId"]
    assert (await merchant.read(virtual.created))["paymentState"] == "AUTHORIZED"
    taken = await virtual.clear(name, "capture", "60.00", "ship-1")
    assert taken.status_code == 200, taken.text
    assert (taken.json()["amount"], taken.json()["orderId"]) == (60.0, virtual.created["orderId"])
    assert (await virtual.clear(name, "refund", "10.00", "back-1")).status_code == 200
    assert (await virtual.clear(name, "reverse", None, "rest")).json()["amount"] == 40.0
    record = await merchant.read(virtual.created)
    assert [item["merchantReference"] for item in record["captures"]] == ["card-ship-1"]
    assert [item["merchantReference"] for item in record["refunds"]] == ["card-back-1"]
    assert [item["merchantReference"] for item in record["voids"]] == ["card-rest"]
    assert (record["capturedAmount"], record["refundedAmount"], record["amount"]) == (60.0, 10.0, 60.0)
    book = await virtual.book()
    assert (book["captured"], book["refunded"], book["reversed"]) == (6000, 1000, 4000)
    assert (book["held"], book["going_back"]) == (0, 0)
    await _agree(virtual)


@pytest.mark.parametrize("operation", ["capture", "reverse", "refund"])
async def test_a_repeated_reference_gets_the_same_answer_and_acts_once(
    merchant: Merchant, operation: str
) -> None:
    virtual = await virtual_order(merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    assert (await virtual.clear(name, "capture", "50.00")).status_code == 200
    answers = [await virtual.clear(name, operation, "20.00", "r-1") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.text for answer in answers}) == 1
    other = await virtual.clear(name, operation, "20.01", "r-1")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    done = {"capture": "captured", "reverse": "reversed", "refund": "refunded"}[operation]
    assert (await virtual.book())[done] == (7000 if operation == "capture" else 2000)
    await _agree(virtual)


async def test_of_64_authorizations_at_once_one_is_approved(merchant: Merchant) -> None:
    virtual = await virtual_order(merchant)
    card = await virtual.card()
    answers = await asyncio.gather(*(virtual.authorize(card, "100.00") for _ in range(64)))
    assert sorted(str(answer["reason"]) for answer in answers) == ["None"] + ["already_used"] * 63
    assert sum(answer["approved"] for answer in answers) == 1
    assert (await virtual.book())["authorised"] == 10_000


async def test_of_many_captures_at_once_with_one_reference_one_is_applied(merchant: Merchant) -> None:
    virtual = await virtual_order(merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    answers = await asyncio.gather(*(virtual.clear(name, "capture", "30.00", "one") for _ in range(20)))
    # On a busy machine, some requests get 503. Repeated later, they return the movement that was applied.
    assert {answer.status_code for answer in answers} <= {200, 409, 503}
    async with merchant.service.clock.moved(seconds=LEASE.total_seconds() + 1):
        again = await virtual.clear(name, "capture", "30.00", "one")
    assert again.status_code == 200
    record = await merchant.read(virtual.created)
    assert (record["capturedAmount"], len(record["captures"])) == (30.0, 1)
    assert (await virtual.book())["captured"] == 3000


async def test_of_many_captures_at_once_no_more_than_the_amount_is_taken(merchant: Merchant) -> None:
    virtual = await virtual_order(merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    answers = await asyncio.gather(*(virtual.clear(name, "capture", "30.00") for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [422] * 17
    assert (await merchant.read(virtual.created))["capturedAmount"] == 90.0
    await _agree(virtual)


async def test_a_declined_authorization_has_a_reason(merchant: Merchant, auto_merchant: Merchant) -> None:
    virtual = await virtual_order(merchant)
    card = await virtual.card()
    wrong = {
        "unknown_card": {"number": "4242424242424242"},
        "incorrect_details": {"cvc": f"{(int(card['cvc']) + 1) % 1000:03d}"},
        "wrong_merchant": {"merchantId": str(auto_merchant.merchant_id)},
        "exceeds_limit": {"amount": "100.01"},
    }
    for reason, change in wrong.items():
        answer = await virtual.authorize({**card, **change}, change.get("amount", "100.00"))
        assert (answer["approved"], answer["reason"]) == (False, reason)
    year = int(card["expirationYear"]) + 1
    assert (await virtual.authorize(card, 1, expirationYear=year))["reason"] == "incorrect_details"
    async with merchant.service.clock.moved(days=366 * 4):
        assert (await virtual.authorize(card, 1))["reason"] == "expired_card"
    async with merchant.service.clock.moved(days=13, minutes=1):
        assert (await virtual.authorize(card, 1))["reason"] == "order_expired"
    assert (await merchant.move(virtual.created, "void", "100.00")).status_code == 200
    assert (await virtual.authorize(card, 1))["reason"] == "order_voided"


async def test_a_repeated_authorization_with_the_same_reference_gets_the_same_answer(
    merchant: Merchant,
) -> None:
    virtual = await virtual_order(merchant)
    card = await virtual.card()
    first = await virtual.authorize(card, "80.00", reference="try-1")
    assert await virtual.authorize(card, "80.00", reference="try-1") == first
    assert (await virtual.authorize(card, "80.00"))["reason"] == "already_used"
    changed = await ask(merchant.http, "authorize", {**card, "amount": "70.00", "reference": "try-1"})
    assert (changed.status_code, changed.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_reference_reveals_nothing_to_a_caller_who_knows_only_the_card_number(
    merchant: Merchant, auto_merchant: Merchant
) -> None:
    virtual = await virtual_order(merchant)
    card = await virtual.card()
    guessed = {**card, "cvc": f"{(int(card['cvc']) + 1) % 1000:03d}"}
    assert not (await virtual.authorize(guessed, "80.00", reference="try-1"))["approved"]
    # A mistyped security code does not use up the reference either.
    first = await virtual.authorize(card, "80.00", reference="try-1")
    assert first["approved"]
    for change in (guessed, {**card, "merchantId": str(auto_merchant.merchant_id)}):
        answer = await virtual.authorize(change, "80.00", reference="try-1")
        assert not answer["approved"]
        assert answer["authorizationId"] != first["authorizationId"]
    assert await virtual.authorize(card, "80.00", reference="try-1") == first


async def test_an_amount_that_the_merchant_voids_can_no_longer_be_charged_on_the_card(
    merchant: Merchant,
) -> None:
    virtual = await virtual_order(merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    await merchant.move(virtual.created, "void", "30.00")
    # The issuer does not have the new limit yet. The order itself refuses, and the held amount is released.
    late = await virtual.clear(name, "capture", "80.00", "all")
    assert (late.status_code, late.json()["code"]) == (422, "capture_exceeds_authorized")
    assert (await virtual.book())["held"] == 0
    await tell_limits(merchant.service.context)
    assert (await virtual.book())["spend_limit"] == 7000
    assert (await virtual.clear(name, "capture", "70.01", "all")).status_code == 422
    assert (await virtual.clear(name, "capture", "70.00", "all")).status_code == 200
    await _agree(virtual)


async def test_the_merchant_s_own_reference_is_not_confused_with_the_card_s(merchant: Merchant) -> None:
    virtual = await virtual_order(merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    await merchant.move(virtual.created, "capture", "20.00", "card-x")
    answer = await virtual.clear(name, "capture", "20.00", "x")
    assert (answer.status_code, answer.json()["code"]) == (422, "duplicate_reference")
    assert ((await virtual.book())["captured"], (await virtual.book())["held"]) == (0, 0)


@pytest.mark.parametrize("name", ["nonsense", str(UUID(int=7))])
async def test_an_unknown_authorization_is_not_found(merchant: Merchant, name: str) -> None:
    answer = await ask(merchant.http, f"authorizations/{name}/capture", {"reference": "a", "amount": "1.00"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_all_bad_fields_are_named_and_their_values_are_not_repeated(merchant: Merchant) -> None:
    body = {"number": "4242x4242", "cvc": "12345678", "expirationMonth": 13, "amount": "-1"}
    answer = await ask(merchant.http, "authorize", body)
    named = {error["field"] for error in answer.json()["errors"]}
    assert named == {"number", "cvc", "expirationMonth", "expirationYear", "amount"}
    assert "4242x4242" not in answer.text
    assert "12345678" not in answer.text


async def test_production_has_no_simulated_card_network(merchant: Merchant, service: Running) -> None:
    settings = replace(service.settings, environment="production")
    app = make_app(replace(service.context, settings=settings))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="https://pay.example"
    ) as http:
        for path in ("authorize", f"authorizations/{uuid4()}/capture"):
            answer = await ask(http, path, {})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
