"""`/checkouts`: the requests of a shop system, their answers, and the checkout's state after each event."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx

from cuota.flows.checkout.leave_checkout import lapse_order, leave_checkout
from cuota.flows.order.expire_authorizations import expire_authorization
from support.api.bodies import assert_refused, failures
from support.api.smi_bodies import BACK, FULL, changed, smi_body
from support.gateway import gateway_body, post_json
from support.makers import PROFILE, Merchant, Running, complete, make_merchant
from support.makers import Profile as Person


async def start(merchant: Merchant, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    answer = await merchant.http.post("/checkouts", json=body or smi_body(), headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def state(merchant: Merchant, checkout: dict[str, Any]) -> str:
    found = await merchant.http.get(f"/checkouts/{checkout['id']}")
    assert found.status_code == 200, found.text
    assert found.json() == {**checkout, "state": found.json()["state"]}
    return str(found.json()["state"])


async def pay(merchant: Merchant, checkout: dict[str, Any], **more: Any) -> None:
    token = httpx.URL(checkout["uri"]).params["token"]
    await complete(merchant.service, merchant.merchant_id, {"token": token}, **more)


async def test_a_new_checkout_is_answered_with_its_address(merchant: Merchant) -> None:
    checkout = await start(merchant, FULL)
    base = merchant.service.settings.public_url
    assert checkout.keys() == {"id", "uri", "type", "created", "state"}
    assert (checkout["type"], checkout["state"]) == ("checkout", "created")
    assert checkout["uri"].startswith(f"{base}/checkout/{merchant.merchant_id}?token=")
    assert await state(merchant, checkout) == "created"
    record = (await merchant.http.get(f"/order/{checkout['id']}")).json()
    assert record["createdDateTime"] == checkout["created"]
    assert (record["amount"], record["shippingAmount"], record["merchantReference"]) == (119.96, 5, "S-7")
    assert record["consumer"]["surname"] == "Rivera-Smith"
    assert record["billing"]["addressLine2"] == "Apt 4"
    assert record["shipping"]["postcode"] == "10001"
    assert record["items"][0]["price"] == 57.48
    assert record["merchant"] == {
        "redirectConfirmUrl": BACK,
        "redirectCancelUrl": BACK,
        "statusCallbackUrl": None,
    }


async def test_additional_data_is_stored_as_sent_and_never_prevents_a_sale(merchant: Merchant) -> None:
    checkout = await start(merchant, FULL)
    sql = "SELECT additional::text AS kept FROM sdk_checkouts WHERE merchant_id = $1 AND order_id = $2"
    row = await merchant.service.context.pool.fetchrow(sql, merchant.merchant_id, UUID(checkout["id"]))
    assert row is not None
    assert json.loads(row["kept"]) == {"carrier": "smi", "fields": FULL["shopper"]["additional_data"]}
    for value in ("x", 7, [1], {"customer_logged_in": {"x": 1}}):
        started = await start(merchant, changed("shopper.additional_data", value))
        record = (await merchant.http.get(f"/order/{started['id']}")).json()
        assert [w["field"].startswith("shopper.additional_data") for w in record["warnings"]] == [True]


async def test_a_paid_checkout_that_is_captured_at_once_is_completed(auto_merchant: Merchant) -> None:
    checkout = await start(auto_merchant)
    await pay(auto_merchant, checkout)
    assert await state(auto_merchant, checkout) == "completed"


async def test_a_paid_checkout_is_approved_until_all_of_it_is_captured(merchant: Merchant) -> None:
    checkout = await start(merchant)
    order = {"orderId": checkout["id"]}
    await pay(merchant, checkout)
    assert await state(merchant, checkout) == "approved"
    await merchant.move(order, "capture", "40.00")
    assert await state(merchant, checkout) == "approved"
    await merchant.move(order, "void", "60.00")
    assert await state(merchant, checkout) == "completed"
    await merchant.move(order, "refund", "40.00")
    assert await state(merchant, checkout) == "completed"


async def test_a_voided_checkout_is_cancelled(merchant: Merchant) -> None:
    checkout = await start(merchant)
    await pay(merchant, checkout)
    await merchant.move({"orderId": checkout["id"]}, "void", "100.00")
    assert await state(merchant, checkout) == "cancelled"


async def test_a_checkout_whose_authorization_ended_without_a_capture_is_expired(merchant: Merchant) -> None:
    service, checkout = merchant.service, await start(merchant)
    await pay(merchant, checkout)
    async with service.clock.moved(days=13, minutes=1):
        for _ in range(3):
            await expire_authorization(service.context, merchant.merchant_id, UUID(checkout["id"]))
    assert await state(merchant, checkout) == "expired"


async def test_a_declined_checkout_is_declined(merchant: Merchant) -> None:
    checkout = await start(merchant)
    await pay(merchant, checkout, profile=Person("Jordan", "Declinetest", PROFILE.email, PROFILE.address))
    assert await state(merchant, checkout) == "declined"


async def test_a_checkout_that_the_customer_left_is_cancelled_and_one_whose_time_ended_is_expired(
    merchant: Merchant,
) -> None:
    context = merchant.service.context
    left, lapsed, late = [await start(merchant) for _ in range(3)]
    await leave_checkout(context, merchant.merchant_id, UUID(left["id"]))
    async with merchant.service.clock.moved(minutes=60):
        await lapse_order(context, merchant.merchant_id, UUID(lapsed["id"]))
        # The order expired before the customer canceled it.
        await leave_checkout(context, merchant.merchant_id, UUID(late["id"]))
        assert await state(merchant, left) == "cancelled"
    assert [await state(merchant, each) for each in (left, lapsed, late)] == [
        "cancelled",
        "expired",
        "expired",
    ]


async def test_another_merchant_s_checkout_is_not_found(service: Running, merchant: Merchant) -> None:
    checkout, order = await start(merchant), await merchant.create()
    async with make_merchant(service) as other:
        assert_refused(await other.http.get(f"/checkouts/{checkout['id']}"), 404, "order_not_found")
    token = httpx.URL(checkout["uri"]).params["token"]
    signed = (await post_json(merchant, gateway_body(merchant))).json()
    for name in (
        order["orderId"],
        signed["orderId"],
        token,
        "6f1c1d60-0000-4000-8000-000000000000",
        "7",
        "%00",
    ):
        assert_refused(await merchant.http.get(f"/checkouts/{name}"), 404, "order_not_found")


async def test_a_call_without_a_token_is_refused(service: Running, merchant: Merchant) -> None:
    checkout = await start(merchant)
    async with service.client() as nobody:
        assert_refused(await nobody.get(f"/checkouts/{checkout['id']}"), 401, "unauthorized")
        assert_refused(await nobody.post("/checkouts", json=smi_body()), 401, "unauthorized")


async def test_an_idempotency_key_makes_one_checkout(merchant: Merchant) -> None:
    first = await start(merchant, **{"Idempotency-Key": "k-1"})
    again = await merchant.http.post("/checkouts", json=smi_body(), headers={"Idempotency-Key": "k-1"})
    assert again.json() == first
    assert again.headers["idempotency-replayed"] == "true"
    other = await merchant.http.post("/checkouts", json=smi_body("99.00"), headers={"Idempotency-Key": "k-1"})
    assert_refused(other, 422, "idempotency_key_reused")
    refused = [
        await merchant.http.post("/checkouts", json=smi_body("0.50"), headers={"Idempotency-Key": "k-2"})
        for _ in range(2)
    ]
    assert refused[0].content == refused[1].content
    assert failures(refused[1]) == [("order.amount", "out_of_range")]


async def test_one_key_used_64_times_at_once_makes_one_checkout(merchant: Merchant) -> None:
    call = [
        merchant.http.post("/checkouts", json=smi_body(), headers={"Idempotency-Key": "k"}) for _ in range(64)
    ]
    answers = await asyncio.gather(*call)
    assert {answer.status_code for answer in answers} <= {200, 409}
    sql = "SELECT count(*) AS n FROM orders WHERE merchant_id = $1"
    row = await merchant.service.context.pool.fetchrow(sql, merchant.merchant_id)
    assert row is not None
    assert row["n"] == 1
