"""In production, only a merchant's registered origins can start a checkout, and wrong signatures are not explained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuota.flows.merchant import manage_merchants
from cuota.web.app import make_app
from support.makers import Merchant, Running
from support.own_service import InProcess
from support.signed import sdk_body, send

SHOP = "https://shop.example"


@pytest.fixture
async def shop(merchant: Merchant, service: Running) -> Merchant:
    terms = manage_merchants.MerchantTerms(origins=(SHOP,))
    await manage_merchants.update_merchant(service.context, merchant.name, terms)
    context = replace(service.context, settings=replace(service.settings, environment="production"))
    live = InProcess(context.settings, context, service.clock, make_app(context))
    return replace(merchant, service=live)


def body(shop: Merchant) -> dict[str, object]:
    return {**sdk_body(shop), "callbackUrl": "https://shop.example/hook"}


async def test_a_registered_origin_starts_a_checkout(shop: Merchant) -> None:
    assert (await send(shop, body(shop), origin=SHOP)).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://shop.example", "https://shop.example:8443", "https://evil.example",
     "https://shop.example.evil.example", "https://SHOP.example", "https://shop.example/"],
)  # fmt: skip
async def test_every_other_origin_is_refused_and_the_error_says_how_to_register_it(
    shop: Merchant, origin: str | None
) -> None:
    answer = await send(shop, body(shop), origin=origin)
    assert answer.status_code == 403
    assert answer.json()["code"] == "origin_not_registered"
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_without_a_valid_signature_the_origin_is_not_checked(shop: Merchant) -> None:
    answer = await send(shop, body(shop), origin="https://evil.example", **{"X-Pay-Signature": "AAAA"})
    assert answer.json()["code"] == "invalid_signature"


async def test_a_wrong_signature_is_not_explained(shop: Merchant) -> None:
    told = (await send(shop, body(shop), origin=SHOP, **{"X-Pay-Signature": "AAAA"})).json()
    assert not {"received", "firstDifference", "hint"} & told.keys()
