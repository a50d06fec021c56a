"""A card number that a shopper typed into a text field of the shop is never stored or repeated."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.bodies import FULL, JSON, changed
from support.api.smi_bodies import smi_body
from support.gateway import form_fields, gateway_body, post_form, post_json, signed
from support.makers import Merchant, order_body
from support.signed import sdk_body, send

CARD, SPACED = "4242424242424242", "4242 4242 4242 4242"


async def kept_of(merchant: Merchant) -> str:
    """Return everything that the database stores about this merchant's orders, as text."""
    tables = ("orders", "order_details", "events", "idempotency_keys", "deliveries")
    texts = []
    for table in tables:
        sql = f"SELECT to_jsonb(t)::text AS row FROM {table} t WHERE merchant_id = $1"
        texts += [row["row"] for row in await merchant.service.context.pool.fetch(sql, merchant.merchant_id)]
    return "\n".join(texts)


async def assert_hidden(merchant: Merchant, *texts: str) -> None:
    kept = await kept_of(merchant)
    assert "4242" in kept, "nothing was kept at all"
    for text in (kept, *texts):
        assert CARD not in text
        assert SPACED not in text
        # PostgreSQL prints bytea as hexadecimal digits.
        assert CARD.encode().hex() not in text


@pytest.mark.parametrize(
    "path",
    ["description", "items[0].name", "items[0].description", "billing.addressLine1", "shipping.city", "metadata.note"],
)  # fmt: skip
async def test_an_order_stores_a_card_number_only_masked(merchant: Merchant, path: str) -> None:
    for number, text in enumerate((CARD, f"card {SPACED}")):
        body = changed(path, text) | {"merchantReference": f"M-{number}"}
        made = await merchant.http.post(
            "/order", json=body, headers={"Idempotency-Key": f"k-{path}-{number}"}
        )
        assert made.status_code == 200, made.text
        record = await merchant.http.get(f"/order/{made.json()['orderId']}")
        await assert_hidden(merchant, record.text, made.text)


async def test_references_by_which_the_merchant_finds_its_order_are_stored_unchanged(
    merchant: Merchant,
) -> None:
    body = changed("items[0].sku", CARD) | {"merchantReference": CARD}
    body["merchant"] = {**body["merchant"], "redirectConfirmUrl": f"http://127.0.0.1:9/ok?cart={CARD}"}
    made = await merchant.http.post("/order", json=body)
    record = (await merchant.http.get(f"/order/{made.json()['orderId']}")).json()
    assert (record["merchantReference"], record["items"][0]["sku"]) == (CARD, CARD)
    assert record["merchant"]["redirectConfirmUrl"].endswith(CARD)


async def test_a_refusal_does_not_repeat_a_card_number(merchant: Merchant) -> None:
    wrong = form_fields(merchant, **{f"order.lineItems[{CARD}].name": "a"})
    refused = [
        await merchant.http.post("/order", json=changed("metadata", {CARD: 7, SPACED: "x" * 600})),
        await merchant.http.post("/order", json=order_body(CARD)),
        await merchant.http.post("/order", content=f'{{"{CARD}":1,"{CARD}":2}}', headers=JSON),
        await merchant.http.get(f"/order/{CARD}"),
        await send(merchant, sdk_body(merchant, description=f"{SPACED} "), **{"X-Pay-Signature": "x"}),
        await post_form(merchant, signed(merchant, wrong), Accept="*/*"),
        await post_form(merchant, form_fields(merchant, description=SPACED, signature="x"), Accept="*/*"),
    ]
    for answer in refused:
        assert answer.status_code >= 400
        assert CARD not in answer.text
        assert SPACED not in answer.text
        assert SPACED.replace(" ", "+") not in answer.text


async def test_checkouts_by_the_sdk_the_gateway_and_a_shop_system_store_a_card_number_only_masked(
    merchant: Merchant,
) -> None:
    order = {"lineItems": [{"name": SPACED, "description": CARD}]}
    additional = {"merchantRiskAssessment": CARD, "customerTransactionCount": int(CARD)}
    more: dict[str, Any] = {
        "description": f"{CARD}.",
        "metadata": {"note": CARD},
        "additionalData": additional,
    }
    texts = {"description": SPACED, "order.lineItems[0].name": CARD, "metadata.note": CARD}
    form = signed(merchant, form_fields(merchant, merchantReference="F-1", **texts))
    for answer in (
        await send(merchant, sdk_body(merchant, order=dict(order), **more)),
        await post_json(merchant, gateway_body(merchant, order=dict(order), **more)),
        await post_form(merchant, form, Accept="*/*"),
        await merchant.http.post("/checkouts", json=_shop(additional)),
    ):
        assert answer.status_code in {200, 303}, answer.text
        await assert_hidden(merchant, answer.text)


def _shop(additional: dict[str, Any]) -> dict[str, Any]:
    items = [{"name": SPACED, "sku": "S", "quantity": 1, "price": 1, "description": CARD}]
    return {**smi_body(items=items), "shopper": {"first_name": "Ana", "additional_data": additional}}


async def test_an_order_without_a_card_number_is_stored_unchanged(merchant: Merchant) -> None:
    body = FULL | {"description": "Size 42, 4242 4242 4242 4241, 2026-11-22"}
    made = await merchant.http.post("/order", json=body)
    assert (await merchant.http.get(f"/order/{made.json()['orderId']}")).json()["description"] == body[
        "description"
    ]
