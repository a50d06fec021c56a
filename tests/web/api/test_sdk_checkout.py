"""`POST /sdk/v1/checkouts`: which requests start a checkout, and the effect of a repeated signed text."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from cuota.core.webhook.signature import pay_signature
from cuota.flows.checkout.leave_checkout import lapse_order
from cuota.flows.merchant import manage_merchants
from support.core.values import PROFILE
from support.makers import Merchant, Running, complete, make_merchant
from support.signed import SHOP, sdk_body, send, started


async def rows(service: Running, sql: str, *values: object) -> list[Any]:
    return list(await service.context.pool.fetch(sql, *values))


@pytest.fixture
async def shop(service: Running) -> AsyncIterator[Merchant]:
    async with make_merchant(service) as made:
        yield made


async def test_a_signed_request_from_a_page_starts_a_checkout(shop: Merchant) -> None:
    answer = await send(shop, sdk_body(shop))
    told = answer.json()
    assert answer.status_code == 200
    assert told["orderStatus"] == "Created"
    assert "result" not in told
    assert told["checkoutUrl"].endswith(f"/checkout/{shop.merchant_id}?token={told['token']}&display=popup")
    assert answer.headers["access-control-allow-origin"] == "*"
    record = (await shop.http.get(f"/order/{told['orderId']}")).json()
    assert record["merchantReference"] == "B-7"
    assert record["merchant"]["statusCallbackUrl"] == f"{SHOP}/webhooks"


async def test_the_browser_s_preflight_request_is_answered(shop: Merchant) -> None:
    async with shop.service.client() as page:
        answer = await page.options("/sdk/v1/checkouts", headers={"Origin": SHOP})
    assert answer.status_code == 204
    assert "x-pay-signature" in answer.headers["access-control-allow-headers"]
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_an_unknown_merchant_and_a_wrong_signature_get_the_same_answer(shop: Merchant) -> None:
    wrong = await send(shop, sdk_body(shop), **{"X-Pay-Signature": base64.b64encode(b"x" * 32).decode()})
    body = {**sdk_body(shop), "merchantId": "6f1c1d60-0000-4000-8000-000000000000"}
    unknown = await send(shop, body, **{"X-Pay-Signature": base64.b64encode(b"x" * 32).decode()})
    for answer in (wrong, unknown):
        assert answer.status_code == 401
        assert answer.json()["code"] == "invalid_signature"
        assert answer.headers["access-control-allow-origin"] == "*"
    assert wrong.json().keys() == unknown.json().keys()
    assert wrong.json()["message"] == unknown.json()["message"]


async def test_the_sandbox_s_error_about_a_signature_shows_the_received_text_and_never_the_expected_signature(
    shop: Merchant,
) -> None:
    raw = json.dumps({**sdk_body(shop), "order": {"amount": 10.0, "currency": "USD"}}).encode()
    other = json.dumps(json.loads(raw), separators=(",", ":")).encode()
    answer = await send(shop, raw, **{"X-Pay-Signature": pay_signature(shop.signing_secret, other + b" ")})
    told = answer.json()
    assert told["received"]["bytes"] == len(raw)
    assert told["firstDifference"]["at"] > 0
    assert told["hint"]
    assert pay_signature(shop.signing_secret, raw) not in answer.text


async def test_a_missing_signature_and_another_merchant_s_are_refused(
    shop: Merchant, service: Running
) -> None:
    async with make_merchant(service) as other:
        raw = json.dumps(sdk_body(shop)).encode()
        foreign = await send(shop, raw, **{"X-Pay-Signature": pay_signature(other.signing_secret, raw)})
    missing = await send(shop, raw, **{"X-Pay-Signature": ""})
    assert [foreign.status_code, missing.status_code] == [401, 401]


async def test_a_revoked_merchant_s_signature_is_refused(shop: Merchant) -> None:
    await manage_merchants.revoke_merchant(shop.service.context, shop.name)
    assert (await send(shop, sdk_body(shop))).json()["code"] == "invalid_signature"


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example/", "ftp://shop.example", "https://a@b.example"]
)
async def test_a_null_origin_is_refused_in_the_sandbox_too(shop: Merchant, origin: str) -> None:
    answer = await send(shop, sdk_body(shop), origin=origin)
    assert answer.status_code == 403
    assert answer.json()["code"] == "origin_not_registered"
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_the_same_signed_text_is_the_same_order(shop: Merchant) -> None:
    raw = json.dumps(sdk_body(shop)).encode()
    first, second = (await send(shop, raw)).json(), (await send(shop, raw)).json()
    assert first["orderId"] == second["orderId"]
    assert first["token"] == second["token"]
    spaced = await send(shop, raw + b" ")
    assert spaced.json()["orderId"] != first["orderId"]


async def test_sixty_four_identical_requests_at_once_make_one_order(shop: Merchant, service: Running) -> None:
    raw = json.dumps(sdk_body(shop)).encode()
    answers = await asyncio.gather(*(send(shop, raw) for _ in range(64)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["orderId"] for answer in answers}) == 1
    assert len(await rows(service, "SELECT 1 FROM orders WHERE merchant_id = $1", shop.merchant_id)) == 1


async def test_two_merchants_may_sign_the_same_text(shop: Merchant, service: Running) -> None:
    async with make_merchant(service) as other:
        one = await started(shop)
        two = await started(other)
    assert one["orderId"] != two["orderId"]


async def test_after_the_payment_the_same_text_reports_the_result(shop: Merchant) -> None:
    raw = json.dumps(sdk_body(shop, order={"merchantFeeForPaymentPlan": "4.00"})).encode()
    first = (await send(shop, raw)).json()
    await complete(shop.service, shop.merchant_id, first, phone="2125550187")
    again = (await send(shop, raw)).json()
    assert again["orderStatus"] == "Approved"
    assert again["result"] == {
        "customer": {
            "firstName": "Jordan", "lastName": "Rivera", "email": "jordan@mail.example", "phoneNumber": "2125550187",
            "address1": "1480 Mission Street", "address2": "", "city": "San Francisco", "state": "CA",
            "postalCode": "94103", "country": "US",
        },
        "orderId": first["orderId"],
        "merchantFeeForPaymentPlan": 4.0,
    }  # fmt: skip


async def test_an_order_with_capture_true_is_captured_at_the_approval_and_one_with_false_is_not(
    shop: Merchant,
) -> None:
    captured = await started(shop, capture=True)
    kept = await started(shop, capture=False, callbackUrl=None)
    for order in (captured, kept):
        await complete(shop.service, shop.merchant_id, order)
    assert (await shop.read(captured))["paymentState"] == "CAPTURED"
    assert (await shop.read(kept))["paymentState"] == "AUTHORIZED"


async def test_the_merchant_s_page_ends_the_session_and_the_order_is_abandoned(shop: Merchant) -> None:
    raw = json.dumps(sdk_body(shop)).encode()
    assert (await send(shop, raw, "/leave")).json()["code"] == "order_not_found"
    first = (await send(shop, raw)).json()
    left = (await send(shop, raw, "/leave")).json()
    assert (left["orderId"], left["orderStatus"]) == (first["orderId"], "Abandoned")
    assert (await shop.read(first))["orderStatus"] == "Abandoned"
    assert (await send(shop, raw)).json()["orderStatus"] == "Abandoned"


async def test_leaving_a_paid_checkout_changes_nothing(shop: Merchant) -> None:
    raw = json.dumps(sdk_body(shop)).encode()
    first = (await send(shop, raw)).json()
    await complete(shop.service, shop.merchant_id, first)
    left = (await send(shop, raw, "/leave")).json()
    assert left["orderStatus"] == "Approved"
    assert left["result"]["orderId"] == first["orderId"]


async def test_an_ended_checkout_says_why_it_ended_by_the_service_s_clock(shop: Merchant) -> None:
    canceled, expired = (json.dumps(sdk_body(shop, merchantReference=each)).encode() for each in "AB")
    for raw in (canceled, expired):
        assert "closeReason" not in (await send(shop, raw)).json()
    assert (await send(shop, canceled, "/leave")).json()["closeReason"] == "closed_by_customer"
    async with shop.service.clock.moved(minutes=61):
        late = (await send(shop, expired)).json()
        await lapse_order(shop.service.context, shop.merchant_id, UUID(late["orderId"]))
        # The canceled checkout's time is over too, but that is not why it ended.
        for raw, reason in ((canceled, "closed_by_customer"), (expired, "session_expired")):
            told = (await send(shop, raw)).json()
            assert (told["orderStatus"], told["closeReason"]) == ("Abandoned", reason)


async def test_a_paid_checkout_has_no_reason_and_a_declined_one_says_so(shop: Merchant) -> None:
    for surname, told in (("Rivera", ("Approved", None)), ("Declinetest", ("Declined", "declined"))):
        raw = json.dumps(sdk_body(shop, merchantReference=surname)).encode()
        order = (await send(shop, raw)).json()
        await complete(shop.service, shop.merchant_id, order, profile=replace(PROFILE, surname=surname))
        answer = (await send(shop, raw)).json()
        assert (answer["orderStatus"], answer.get("closeReason")) == told


async def test_leaving_a_checkout_requires_the_signature(shop: Merchant) -> None:
    raw = json.dumps(sdk_body(shop)).encode()
    first = (await send(shop, raw)).json()
    refused = await send(shop, raw, "/leave", **{"X-Pay-Signature": "AAAA"})
    assert refused.status_code == 401
    assert (await shop.read(first))["orderStatus"] == "Created"


async def test_an_order_over_the_limit_is_refused_and_causes_one_webhook(
    shop: Merchant, service: Running
) -> None:
    raw = json.dumps(sdk_body(shop, "2000.01")).encode()
    for _ in range(2):
        answer = await send(shop, raw)
        assert answer.status_code == 400
        assert answer.json()["code"] == "amount_out_of_range"
        assert [error["field"] for error in answer.json()["errors"]] == ["order.amount"]
    events = await rows(
        service,
        "SELECT type, success, message FROM events WHERE merchant_id = $1 ORDER BY sequence",
        shop.merchant_id,
    )
    assert [(event["type"], event["success"]) for event in events] == [
        ("order.created", True),
        ("order.rejected", False),
    ]


async def test_data_that_a_click_adds_is_stored_but_signed_data_takes_precedence(
    shop: Merchant, service: Running
) -> None:
    said = base64.urlsafe_b64encode(json.dumps({"sameDevice": True, "x": [1]}).encode()).decode().rstrip("=")
    clicked = (await send(shop, sdk_body(shop, merchantReference="1"), **{"X-Pay-Additional": said})).json()
    signed = (
        await send(
            shop,
            sdk_body(shop, merchantReference="2", additionalData={"sameDevice": "no"}),
            **{"X-Pay-Additional": said},
        )
    ).json()
    broken = (await send(shop, sdk_body(shop, merchantReference="3"), **{"X-Pay-Additional": "%%%"})).json()
    sql = "SELECT additional FROM sdk_checkouts WHERE merchant_id = $1 ORDER BY order_id"
    kept = [json.loads(row["additional"] or "null") for row in await rows(service, sql, shop.merchant_id)]
    assert kept == [
        {"carrier": "click_event", "fields": {"sameDevice": True}},
        {"carrier": "sdk", "fields": {"sameDevice": "no"}},
        None,
    ]
    assert clicked["warnings"][0]["field"] == "additionalData.x"
    assert signed["warnings"] == []
    assert broken["warnings"][0]["field"] == "additionalData"


async def test_any_page_may_open_the_blank_window_but_none_may_frame_it(service: Running) -> None:
    async with service.client() as browser:
        page = await browser.get("/sdk/v1/window")
    assert page.status_code == 200
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "data-pay-window" in page.text


async def test_random_bytes_never_cause_a_server_error(shop: Merchant) -> None:
    raw = json.dumps(sdk_body(shop)).encode()
    for _ in range(60):
        spot = secrets.randbelow(len(raw))
        broken = raw[:spot] + secrets.token_bytes(secrets.randbelow(4)) + raw[spot + secrets.randbelow(9) :]
        answer = await send(shop, broken)
        assert answer.status_code < 500


async def test_an_unreadable_value_is_named_in_the_warnings_and_does_not_prevent_the_sale(
    shop: Merchant, service: Running
) -> None:
    said = {"customerLoggedIn": "maybe", "accountCreationDate": "2019-04-05", "favouriteColour": "green"}
    told = (await send(shop, sdk_body(shop, additionalData=said))).json()
    assert told["orderStatus"] == "Created"
    assert [warning["field"] for warning in told["warnings"]] == ["additionalData.customerLoggedIn"]
    assert (await shop.read(told))["warnings"] == told["warnings"]
    sql = "SELECT additional FROM sdk_checkouts WHERE merchant_id = $1"
    kept = json.loads((await rows(service, sql, shop.merchant_id))[0]["additional"])
    assert kept == {"carrier": "sdk", "fields": said, "unknown": 1}
