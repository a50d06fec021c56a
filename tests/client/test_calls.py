"""Tests each call of the client on the real service, as a merchant makes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from cuota.client import NotFound, RequestRefused, cents
from cuota.core.sandbox import REFERRED_SURNAME
from support.client_tools import Both
from support.makers import PROFILE, Merchant, complete, order_body


async def test_configuration_contains_the_merchant_s_terms(shop: Both) -> None:
    terms = await shop("configuration")
    assert (terms.minimum_amount, terms.maximum_amount) == (Decimal("1.00"), Decimal("2000.00"))
    assert terms.defer_funds_capture is True


async def test_an_order_is_created_and_read(shop: Both) -> None:
    made = await shop("create_order", order_body(cents(11996), metadata={"channel": "web"}))
    order = await shop("get_order", made.order_id)
    assert (order.order_id, order.token) == (made.order_id, made.token)
    assert order.order_id in made.redirect_url or made.token in made.redirect_url
    assert (order.status, order.payment_state, order.currency) == ("Created", "NONE", "USD")
    assert (order.amount, order.original_amount) == (Decimal("119.96"), Decimal("119.96"))
    assert (order.merchant_reference, order.metadata) == ("A-1042", {"channel": "web"})
    assert order.expires_at - order.created_at == timedelta(minutes=60)
    assert (await shop("get_order", made.token)).order_id == made.order_id


async def test_an_order_that_waits_for_a_person_says_until_when(shop: Both, merchant: Merchant) -> None:
    made = await shop("create_order", order_body("100.00"))
    assert (await shop("get_order", made.order_id)).review_until is None
    person = replace(PROFILE, surname=REFERRED_SURNAME)
    ids = {"orderId": made.order_id, "token": made.token}
    await complete(merchant.service, merchant.merchant_id, ids, profile=person)
    order = await shop("get_order", made.order_id)
    assert (order.status, order.expires_at - order.review_until) == ("Created", timedelta(minutes=10))


async def test_items_keep_their_decimals(shop: Both) -> None:
    items = [
        {"name": "Tea", "quantity": Decimal("1.5"), "price": Decimal("3.10")},
        {"name": "Cup", "price": "9.00"},
    ]
    made = await shop("create_order", order_body("20.00", items=items, taxAmount=cents(5)))
    raw = (await shop("get_order", made.order_id)).raw
    assert [item["price"] for item in raw["items"]] == [Decimal("3.10"), Decimal("9.00")]
    assert (raw["items"][0]["quantity"], raw["taxAmount"]) == (Decimal("1.5"), Decimal("0.05"))


async def test_money_is_captured_voided_and_refunded(shop: Both, merchant: Merchant) -> None:
    order_id = (await merchant.approved("100.00"))["orderId"]
    captured = await shop("capture", order_id, "60.00", "ship-1")
    voided = await shop("void", order_id, Decimal(10), "gone-1")
    refunded = await shop("refund", order_id, cents(1250), "back-1")
    assert [(each.operation, each.reference, each.amount, each.repeated) for each in (captured, voided, refunded)] == [
        ("capture", "ship-1", Decimal("60.00"), False),
        ("void", "gone-1", Decimal("10.00"), False),
        ("refund", "back-1", Decimal("12.50"), False),
    ]  # fmt: skip
    order = await shop("get_order", order_id)
    assert (order.captured, order.voided, order.refunded, order.amount) == (
        Decimal("60.00"), Decimal("10.00"), Decimal("12.50"), Decimal("90.00"),
    )  # fmt: skip
    assert (*order.captures, *order.voids, *order.refunds) == (captured, voided, refunded)
    assert refunded.id
    assert captured.at is not None
    assert captured.at.tzinfo is not None


@pytest.mark.parametrize("operation", ["capture", "void", "refund"])
async def test_a_dry_run_returns_the_whole_result_and_changes_nothing(
    shop: Both, merchant: Merchant, operation: str
) -> None:
    order_id = (await merchant.approved("100.00"))["orderId"]
    await shop("capture", order_id, "50.00", "ship-1")
    before = await shop("get_order", order_id)
    seen = await shop(operation, order_id, "30.00", "try", dry_run=True)
    assert (seen.operation, seen.amount) == (operation, Decimal("30.00"))
    changed = {"capture": "captured", "void": "voided", "refund": "refunded"}[operation]
    assert getattr(seen.after.balances, changed) - getattr(seen.before.balances, changed) == Decimal("30.00")
    assert [item.number for item in seen.before.plan] == [1, 2, 3, 4]
    assert seen.before.plan[1].due_on - seen.before.plan[0].due_on == timedelta(days=14)
    assert await shop("get_order", order_id) == before
    assert (await shop(operation, order_id, "30.00", "try")).repeated is False


async def test_a_dry_run_refuses_what_the_real_call_would_refuse(shop: Both, merchant: Merchant) -> None:
    order_id = (await merchant.approved("100.00"))["orderId"]
    with pytest.raises(RequestRefused) as caught:
        await shop("refund", order_id, "1.00", "r", dry_run=True)
    assert caught.value.code == "refund_exceeds_captured"


async def test_another_merchant_s_order_is_not_found(shop: Both, auto_merchant: Merchant) -> None:
    made = await auto_merchant.create()
    with pytest.raises(NotFound) as caught:
        await shop("get_order", made["orderId"])
    assert (caught.value.code, caught.value.status) == ("order_not_found", 404)
    assert caught.value.request_id


@pytest.mark.parametrize("order_id", ["", "..", "a/b", "x?token=y", "é"])
async def test_a_text_that_is_no_id_never_becomes_part_of_an_address(shop: Both, order_id: str) -> None:
    with pytest.raises(ValueError, match="not the id"):
        await shop("capture", order_id, "1.00", "r")
