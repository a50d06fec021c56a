"""Before a signature is verified, almost nothing of the body is read. A signed request of another kind opens no
checkout."""

from __future__ import annotations

import json
import time

import pytest

from cuota.core.webhook.signature import pay_signature
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.api.bodies import JSON, assert_refused
from support.gateway import form_fields, gateway_body, post_form, post_json
from support.gateway import signed as signed_form
from support.makers import Merchant
from support.signed import sdk_body, send

WRONG = {"X-Pay-Signature": "A" * 43 + "="}


async def test_an_unsigned_body_is_refused_for_its_signature_whatever_else_is_wrong_with_it(
    merchant: Merchant,
) -> None:
    named = f'{{"merchantId":"{merchant.merchant_id}",'.encode()
    for rest in (
        b'"a":NaN}',
        b'"a":1,"a":2}',
        b'"a":',
        b"[[[",
        b'"a":[' + b"[]," * 20_000 + b"1]}",
        b'"a":"\xff"}',
    ):
        assert_refused(await send(merchant, named + rest, **WRONG), 401, "invalid_signature")
        assert_refused(
            await post_json(merchant, named + rest, WRONG["X-Pay-Signature"]), 401, "invalid_signature"
        )
        # With a valid signature, the body is read, and then refused for its content.
        assert_refused(await send(merchant, named + rest), 400, "malformed_request")


async def test_the_size_limits_are_128_kib_for_a_signed_body_48_for_a_form_and_16_for_a_token_request(
    merchant: Merchant,
) -> None:
    large = json.dumps(sdk_body(merchant, description="x" * 131_072)).encode()
    for answer in (await send(merchant, large), await post_json(merchant, large)):
        assert_refused(answer, 413, "body_too_large")
        assert answer.headers["connection"] == "close"
    assert (await send(merchant, sdk_body(merchant, description="x" * 100_000))).status_code == 200
    fields = signed_form(merchant, form_fields(merchant, description="x" * 49_152))
    assert_refused(await post_form(merchant, fields, Accept="*/*"), 413, "body_too_large")
    token = await merchant.http.post("/oauth/token", json={"client_id": "x" * 16_384})
    assert (token.status_code, token.json()["error"]) == (413, "invalid_request")


async def test_a_body_of_twenty_thousand_keys_is_malformed(
    merchant: Merchant,
) -> None:
    keys = ",".join(f'"k{number}":1' for number in range(20_000))
    answer = await merchant.http.post("/order", content=f"{{{keys}}}", headers=JSON)
    assert_refused(answer, 400, "malformed_request")
    assert "10,000 values" in answer.json()["message"]


@pytest.mark.parametrize("kind", ["gzip", "br", "deflate", "identity, gzip", "x"])
async def test_a_compressed_body_is_refused_on_every_route(merchant: Merchant, kind: str) -> None:
    body = json.dumps(sdk_body(merchant)).encode()
    for answer in (
        await merchant.http.post("/order", json={}, headers={"Content-Encoding": kind}),
        await send(merchant, body, **{"Content-Encoding": kind}),
        await post_json(merchant, gateway_body(merchant), **{"Content-Encoding": kind}),
        await post_form(merchant, form_fields(merchant), Accept="*/*", **{"Content-Encoding": kind}),
    ):
        assert_refused(answer, 415, "unsupported_media_type")
    token = await merchant.http.post("/oauth/token", json={}, headers={"Content-Encoding": kind})
    assert token.status_code == 415
    assert (await send(merchant, body, **{"Content-Encoding": "identity"})).status_code == 200


async def test_two_authorization_headers_are_refused(merchant: Merchant) -> None:
    good = ("Authorization", merchant.http.headers["authorization"])
    async with merchant.service.client() as http:
        for headers in ([good, good], [good, ("Authorization", "Basic eDp5")]):
            for method, path in (("GET", "/configuration"), ("POST", "/order"), ("GET", "/events")):
                assert_refused(await http.request(method, path, headers=headers), 401, "unauthorized")
            token = await http.post("/oauth/token", json={}, headers=headers)
            assert (token.status_code, token.json()["error"]) == (401, "invalid_client")


async def test_the_body_of_a_webhook_with_its_own_signature_opens_no_checkout(merchant: Merchant) -> None:
    order = await merchant.approved()
    await merchant.move(order, "capture", "10.00")
    await merchant.move(order, "capture", "1000.00")
    await publish_events(merchant.service.context)
    feed = json.loads((await merchant.http.get("/events")).text)["events"]
    assert {"order.created", "order.approved"} <= {event["type"] for event in feed}
    for event in feed:
        # The body that a receiver might expect, with everything else that a request needs.
        raw = json.dumps({**event, "capture": False, "callbackUrl": "http://127.0.0.1:9/"}).encode()
        signature = pay_signature(merchant.signing_secret, raw)
        assert_refused(await send(merchant, raw), 401, "invalid_signature")
        assert_refused(await post_json(merchant, raw, signature), 401, "invalid_signature")


async def test_a_hostile_cookie_is_read_in_linear_time(merchant: Merchant) -> None:
    """The standard library takes a second for this cookie, and meanwhile no other request is answered."""
    async with merchant.service.client() as http:
        spent = []
        for size in (1_800, 14_400):
            cookie = {"Cookie": 'a="' + "\\" * size + '"'}
            rounds = []
            for _ in range(5):
                began = time.process_time()
                assert (await http.get("/account", headers=cookie)).status_code == 200
                rounds.append(time.process_time() - began)
            spent.append(min(rounds))
    # The input is eight times as large, so quadratic code would need 64 times as many steps.
    assert spent[1] < 8 * spent[0]
