"""Wrong data of a merchant about its customer, in every kind of request: no sale is lost, and little is stored."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from cuota import config
from cuota.core.order.order import Status
from cuota.core.risk.model import Model, Weight
from cuota.core.wire.spared_json import read_sparing
from cuota.core.wire.strict_json import BadJson
from cuota.flows.risk.review_decisions import BEGINNING, END, replay
from support.api.smi_bodies import FULL
from support.gateway import form_fields, gateway_body, get_link, post_form, post_json, signed
from support.makers import Merchant, complete
from support.own_service import Own, opened_own
from support.phones import phone_number
from support.signed import sdk_body, send

HUGE = "9" * 5000
WRONG: dict[str, str] = {
    "exponents": '{"customerTransactionCount": 1e400, "customerAverageOrderValue": 1e-400, "merchantRiskAssessment": 1E+499}',
    "signs": '{"customerTransactionCount": -0.0, "customerAverageOrderValue": -1, "merchantRiskAssessment": -0.0, "sameDevice": -1}',
    "huge integers": f'{{"customerTransactionCount": {HUGE}, "merchantRiskAssessment": {HUGE[:400]}, "sameDevice": {HUGE[:18]}}}',
    "long texts": json.dumps(
        {"merchantRiskAssessment": "x" * 32_768, "fulfillmentMethod": "ship" * 8_192, "k" * 32_768: "1"}
    ),
    "nested": '{"customerLoggedIn": {"a": [{}]}, "sameDevice": [true], "fulfillmentMethod": [[[[[]]]]]}',
    "flags": '{"customerLoggedIn": "TRUE ", "customerIsMember": 2, "sameDevice": "ja", "customerFraudIncidents": 0.0}',
    "dates": '{"accountCreationDate": "0000-00-00", "lastTransactionDate": "9999-12-31T23:59:59-14:00"}',
    "early dates": '{"accountCreationDate": "0001-01-01T00:00:00+14:00", "lastTransactionDate": "2999-01-01"}',
    "numbers as dates": '{"accountCreationDate": 20240101, "lastTransactionDate": 1e10, "fulfillmentMethod": 3}',
    "texts of numbers": '{"customerTransactionCount": "NaN", "customerAverageOrderValue": "Infinity", "merchantRiskAssessment": "1e400"}',
    "controls": '{"merchantRiskAssessment": "\\u0001\\u202e\\u2028x", "sameDevice\\u0007": true, "fulfillmentMethod": "\\ufffe"}',
    "both names": '{"sameDevice": true, "same_device": false, "SAMEDEVICE": "1", "SaMe_DeViCe": null}',
    "many": json.dumps({f"f{n}": n for n in range(3000)}),
    # Values that are not JSON, or that the database cannot store. The rest of each body is valid.
    "not a number": '{"customerAverageOrderValue": NaN, "sameDevice": true}',
    "infinite": '{"customerAverageOrderValue": Infinity, "customerTransactionCount": -Infinity}',
    "twice": '{"sameDevice": true, "sameDevice": false}',
    "half a character": '{"merchantRiskAssessment": "low \\ud83d", "\\udc00": 1, "sameDevice": true}',
    "nul": '{"merchantRiskAssessment": "low\\u0000", "sameDevice": true}',
    "out of range": '{"customerTransactionCount": 1e9999999999999999999999, "sameDevice": true}',
    "deep": '{"sameDevice": %s}' % ("[" * 60 + "]" * 60),
}
# The contract's own parser does not accept these bodies as JSON.
UNCHECKED = {"x-no-contract": "1"}
SPOT = '"<here>"'
MODEL = Model(
    "m1", 60, (Weight("customer_is_member", 40_000, 500), Weight("customer_average_order_value", 30_000, 300))
)
Carrier = Callable[[Merchant, str], Awaitable[httpx.Response]]


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    async with opened_own(settings, own_database) as opened:
        async with opened.owner() as owner:
            await owner.execute(
                "INSERT INTO models VALUES ($1, 'm1', $2, '{}', now())",
                opened.merchant.merchant_id, json.dumps(MODEL.as_document()),
            )  # fmt: skip
            await owner.execute("UPDATE merchants SET approvals = 'on', approvals_model = 'm1'")
        yield opened


def _filled(body: dict[str, Any], data: str) -> bytes:
    return json.dumps(body).replace(SPOT, data).encode()


async def sdk(merchant: Merchant, data: str) -> httpx.Response:
    return await send(merchant, _filled(sdk_body(merchant, additionalData="<here>"), data), **UNCHECKED)


async def gateway(merchant: Merchant, data: str) -> httpx.Response:
    return await post_json(
        merchant, _filled(gateway_body(merchant, additionalData="<here>"), data), **UNCHECKED
    )


async def smi(merchant: Merchant, data: str) -> httpx.Response:
    body = {**FULL, "shopper": {**FULL["shopper"], "additional_data": "<here>"}}
    headers = {"Content-Type": "application/json", **UNCHECKED}
    return await merchant.http.post("/checkouts", content=_filled(body, data), headers=headers)


async def click(merchant: Merchant, data: str) -> httpx.Response:
    said = base64.urlsafe_b64encode(data.encode()).decode().rstrip("=")
    body = sdk_body(merchant, merchantReference=secrets.token_hex(8))
    return await send(merchant, body, **{"X-Pay-Additional": said, **UNCHECKED})


async def _paid(own: Own, answer: httpx.Response) -> None:
    assert answer.status_code in {200, 303}, answer.text
    told = answer.json()
    token = told.get("token") or httpx.URL(told["uri"]).params["token"]
    order = await complete(own.service, own.merchant.merchant_id, {"token": token}, phone=phone_number())
    assert order.status is Status.APPROVED


async def _little_is_kept_and_all_comes_out_again(own: Own, orders: int) -> None:
    async with own.owner() as owner:
        kept = await owner.fetch(
            "SELECT d.inputs::text AS inputs, coalesce(s.additional::text, '') AS additional FROM decisions d"
            " JOIN sdk_checkouts s USING (merchant_id, order_id)"
        )
    assert len(kept) == orders
    assert max(len(row["inputs"]) for row in kept) < 2_000
    assert max(len(row["additional"]) for row in kept) < 2_000
    again = await replay(own.context, BEGINNING, END, None)
    assert (again.decisions, again.differences) == (orders, [])


@pytest.mark.parametrize("carrier", [sdk, gateway, smi, click], ids=lambda each: each.__name__)
async def test_wrong_additional_data_never_prevents_a_sale(own: Own, carrier: Carrier) -> None:
    for data in WRONG.values():
        await _paid(own, await carrier(own.merchant, data))
    await _little_is_kept_and_all_comes_out_again(own, len(WRONG))


@pytest.mark.parametrize("as_link", [False, True], ids=["form", "link"])
async def test_wrong_additional_data_in_a_browser_s_form_or_link_never_prevents_a_sale(
    own: Own, *, as_link: bool
) -> None:
    name = "additionalData."
    hostile: tuple[list[tuple[str, str]], ...] = (
        [(f"{name}sameDevice", "true"), ("ADDITIONALDATA.samedevice", "false")],
        [("additionalData", "rubbish"), ("additionaldata", "rubbish"), (f"{name}sameDevice", "yes")],
        [(f"{name}merchantRiskAssessment", "low\0"), (f"{name}a\0", "1"), (f"{name}.", ".")],
        [(f"{name}customerTransactionCount", "NaN"), (f"{name}customerAverageOrderValue", "1e400")],
        [(f"{name}merchantRiskAssessment", "x" * (4_000 if as_link else 32_768))],
        [(f"{name}f{number}", "1") for number in range(100)],
    )
    for number, data in enumerate(hostile):
        fields = signed(own.merchant, [*form_fields(own.merchant, merchantReference=f"H-{number}"), *data])
        call = get_link if as_link else post_form
        await _paid(own, await call(own.merchant, fields, Accept="*/*"))
    await _little_is_kept_and_all_comes_out_again(own, len(hostile))


WRONG_ELSEWHERE = (
    '{"additionalData": {"a": NaN}, "x": NaN}', '{"additionalData": {"a": NaN}, "x": 1, "x": 2}',
    '{"additionalData": {"a": NaN}, "x": "\\ud800"}', '{"additionalData": {"a": NaN}, "\\u0000": 1}',
    '{"additionalData": {"a": NaN}, "x": %s}' % ("[" * 40 + "]" * 40), '{"additionalData": {"a": NaN}, "x": 1e99999999999999999999}',
    '{"additionalData": {"a": NaN}, "additionalData": 1}', '{"additionalData": {"a": NaN}', '{"additionalData": %s' % ("[" * 90_000),
)  # fmt: skip


@pytest.mark.parametrize("body", WRONG_ELSEWHERE)
def test_wrong_json_is_tolerated_only_inside_the_named_member(body: str) -> None:
    with pytest.raises(BadJson):
        read_sparing(body.encode(), "additionalData")


def test_the_readable_parts_of_the_tolerated_member_are_read() -> None:
    text = b'{"x": 1.50, "additionalData": {"n": NaN, "ok": 7, "twice": 1, "twice": 1, "t": "a\\u0000b", "o": {"a": [1]}}}'
    assert read_sparing(text, "additionalData") == {
        "x": Decimal("1.50"),
        "additionalData": {"n": "NaN", "ok": 7, "twice": [], "t": "a\ufffdb", "o": {}},
    }
