"""`POST /orders/authorize` with JSON: which requests start a checkout, its address, and the effect of a repeated signed
text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuota.core.webhook.signature import pay_signature
from support.api.bodies import assert_refused, failures
from support.gateway import SHOP, at_once, gateway_body, orders_of, post_json, record_of
from support.makers import Merchant, Running, complete, make_merchant
from support.signed import send

WRONG = pay_signature("another secret", b"{}")


async def additional_of(merchant: Merchant, order_id: str) -> Any:
    sql = "SELECT additional::text FROM sdk_checkouts WHERE merchant_id = $1 AND order_id = $2::text::uuid"
    row = await merchant.service.context.pool.fetchrow(sql, merchant.merchant_id, order_id)
    assert row is not None
    return json.loads(row["additional"]) if row["additional"] else None


async def test_a_signed_request_is_answered_with_its_checkout(merchant: Merchant) -> None:
    answer = await post_json(merchant, gateway_body(merchant, "119.96"))
    told = answer.json()
    base = merchant.service.settings.public_url
    address = f"{base}/checkout/{merchant.merchant_id}?token={told['token']}&display=redirect"
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    assert (told["checkoutUrl"], told["orderStatus"], told["warnings"]) == (address, "Created", [])
    record = await record_of(merchant, answer)
    assert record["orderId"] == told["orderId"]
    assert (record["amount"], record["merchantReference"]) == (119.96, "G-7")
    assert record["merchant"]["redirectConfirmUrl"] == f"{SHOP}/confirm?order=7"


async def test_capture_and_callback_work_as_in_the_script_s_requests(merchant: Merchant) -> None:
    without = gateway_body(merchant)
    del without["capture"]
    refused = await post_json(merchant, without)
    assert_refused(refused, 400, "validation_failed")
    assert failures(refused) == [("callbackUrl", "required")]
    answer = await post_json(merchant, {**without, "callbackUrl": f"{SHOP}/hook"})
    await complete(merchant.service, merchant.merchant_id, answer.json())
    record = await record_of(merchant, answer)
    assert (record["paymentState"], record["merchant"]["statusCallbackUrl"]) == ("CAPTURED", f"{SHOP}/hook")


async def test_both_return_addresses_are_required_and_all_errors_are_reported_together(
    merchant: Merchant,
) -> None:
    body = gateway_body(
        merchant, "1.005", redirectConfirmUrl=None, redirectCancelUrl="shop", order={"currency": "EUR"}
    )
    answer = await post_json(merchant, body)
    assert_refused(answer, 400, "validation_failed")
    assert set(failures(answer)) == {
        ("order.amount", "invalid"), ("order.currency", "invalid"),
        ("redirectConfirmUrl", "required"), ("redirectCancelUrl", "invalid"),
    }  # fmt: skip
    assert await orders_of(merchant) == 0


async def test_a_wrong_signature_and_an_unknown_merchant_get_the_same_answer(merchant: Merchant) -> None:
    body = gateway_body(merchant)
    unknown = {**body, "merchantId": "6f1c1d60-0000-4000-8000-000000000000"}
    answers = [await post_json(merchant, each, WRONG) for each in (body, unknown)]
    for answer in answers:
        assert_refused(answer, 401, "invalid_signature")
    first, second = (answer.json() for answer in answers)
    assert (first["message"], first.keys()) == (second["message"], second.keys())
    assert await orders_of(merchant) == 0


async def test_another_merchant_s_secret_does_not_sign_a_valid_request(
    service: Running, merchant: Merchant
) -> None:
    async with make_merchant(service) as other:
        raw = json.dumps(gateway_body(merchant)).encode()
        assert_refused(await post_json(other, raw), 401, "invalid_signature")


async def test_a_changed_byte_breaks_the_signature(merchant: Merchant) -> None:
    raw = json.dumps(gateway_body(merchant)).encode()
    good = pay_signature(merchant.signing_secret, raw)
    assert_refused(
        await post_json(merchant, raw.replace(b"100.00", b"10.00"), good), 401, "invalid_signature"
    )
    assert_refused(await post_json(merchant, raw + b" ", good), 401, "invalid_signature")
    assert (await post_json(merchant, raw, good)).status_code == 303


async def test_the_same_signed_text_sent_64_times_at_once_makes_one_order(merchant: Merchant) -> None:
    raw = json.dumps(gateway_body(merchant)).encode()
    address = await at_once(lambda: post_json(merchant, raw))
    assert await orders_of(merchant) == 1
    assert (await post_json(merchant, raw)).headers["location"] == address
    assert (await post_json(merchant, raw + b"\n")).headers["location"] != address


async def test_the_text_of_a_finished_order_leads_to_that_order_without_personal_data(
    merchant: Merchant,
) -> None:
    raw = json.dumps(gateway_body(merchant)).encode()
    first = await post_json(merchant, raw)
    await complete(merchant.service, merchant.merchant_id, first.json())
    again = await post_json(merchant, raw)
    assert (again.status_code, again.headers["location"]) == (303, first.headers["location"])
    assert again.json()["orderStatus"] == "Approved"
    assert "Jordan" not in again.text
    assert await orders_of(merchant) == 1


async def test_an_amount_out_of_range_is_refused_and_has_one_rejected_event(merchant: Merchant) -> None:
    raw = json.dumps(gateway_body(merchant, "2000.01")).encode()
    for _ in range(3):
        answer = await post_json(merchant, raw)
        assert_refused(answer, 400, "amount_out_of_range")
        assert [error["field"] for error in answer.json()["errors"]] == ["order.amount"]
    sql = "SELECT type FROM events WHERE merchant_id = $1 ORDER BY sequence"
    events = await merchant.service.context.pool.fetch(sql, merchant.merchant_id)
    assert [row["type"] for row in events] == ["order.created", "order.rejected"]


async def test_additional_data_is_stored_and_never_prevents_a_sale(merchant: Merchant) -> None:
    known = {"customerLoggedIn": "true", "accountCreationDate": "2024-02-29", "customerTransactionCount": 7}
    answer = await post_json(merchant, gateway_body(merchant, additionalData=known))
    assert await additional_of(merchant, answer.json()["orderId"]) == {"carrier": "gateway", "fields": known}
    hostile: tuple[Any, ...] = (
        *("text", 7, ["a"], {"a": {"b": 1}}, {"a\x01b": [1]}, {"a": "x" * 501}),
        {f"f{n}": n for n in range(2000)},
    )
    for value in hostile:
        answer = await post_json(
            merchant, gateway_body(merchant, additionalData=value, merchantReference=str(value)[:9])
        )
        assert answer.status_code == 303, answer.text
        warnings = answer.json()["warnings"]
        assert 1 <= len(warnings) <= 51
        assert all(warning["field"].startswith("additionalData") for warning in warnings)
    # The database can read each of these documents, so none of them stops the merchant's events.
    sql = "SELECT count(*) AS n FROM order_details WHERE merchant_id = $1 AND document #>> '{merchant,statusCallbackUrl}' IS NULL"
    row = await merchant.service.context.pool.fetchrow(sql, merchant.merchant_id)
    assert row is not None
    assert row["n"] == len(hostile) + 1


async def test_a_virtual_card_checkout_cannot_be_started_by_the_gateway(merchant: Merchant) -> None:
    answer = await post_json(merchant, gateway_body(merchant, integrationType="virtual_card"))
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [("integrationType", "invalid")]
    assert (await post_json(merchant, gateway_body(merchant, integrationType="api"))).status_code == 303


async def test_a_signed_text_of_a_page_leads_to_that_page_s_order(merchant: Merchant) -> None:
    raw = json.dumps(gateway_body(merchant)).encode()
    by_page = await send(merchant, raw)
    answer = await post_json(merchant, raw)
    assert answer.json()["orderId"] == by_page.json()["orderId"]


@pytest.mark.parametrize(
    ("raw", "code"),
    [(b"", "malformed_request"), (b"[]", "malformed_request"), (b'{"a":1 "b":2}', "malformed_request"),
     (b"{}", "validation_failed"), (b'{"merchantId":7}', "validation_failed"), (b"[" * 40 + b"]" * 40, "malformed_request")],
)  # fmt: skip
async def test_a_request_without_a_merchant_id_is_refused_before_the_signature_is_checked(
    merchant: Merchant, raw: bytes, code: str
) -> None:
    assert_refused(await post_json(merchant, raw), 400, code)


async def test_a_wrong_json_type_is_a_malformed_request(merchant: Merchant) -> None:
    for more in (
        {"capture": "true"},
        {"order": {"lineItems": {}}},
        {"redirectCancelUrl": 7},
        {"metadata": []},
    ):
        assert_refused(await post_json(merchant, gateway_body(merchant, **more)), 400, "malformed_request")


async def test_other_media_and_large_bodies_are_refused(merchant: Merchant) -> None:
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/json; charset=latin-1"):
        answer = await post_json(merchant, b"{}", **{"Content-Type": kind})
        assert_refused(answer, 415, "unsupported_media_type")
    large = json.dumps(gateway_body(merchant, description="x" * 262_144)).encode()
    assert_refused(await post_json(merchant, large), 413, "body_too_large")


async def test_a_get_request_starts_no_checkout(merchant: Merchant) -> None:
    async with merchant.service.client() as scanner:
        answer = await scanner.head("/orders/authorize", params={"merchantId": str(merchant.merchant_id)})
        put = await scanner.put("/orders/authorize")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert_refused(put, 405, "method_not_allowed")
