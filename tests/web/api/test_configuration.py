"""Tests of `GET /configuration`."""

from __future__ import annotations

from cuota.core.merchant import BodyProfile
from cuota.flows.merchant import manage_merchants
from support.makers import Merchant


async def test_the_configuration_contains_exactly_the_merchant_s_own_terms(
    merchant: Merchant, auto_merchant: Merchant
) -> None:
    answer = await merchant.http.get("/configuration")
    assert answer.status_code == 200
    assert answer.json() == {"minimumAmount": 1.0, "maximumAmount": 2000.0, "deferFundsCapture": True}
    other = (await auto_merchant.http.get("/configuration")).json()
    assert other["deferFundsCapture"] is False


async def test_amounts_are_exact_decimals(merchant: Merchant) -> None:
    terms = manage_merchants.MerchantTerms(minimum=1001, maximum=99_999_999_999, profile=BodyProfile.STRICT)
    context, name = merchant.service.context, str(merchant.merchant_id)
    await manage_merchants.update_merchant(context, name, terms)
    # This merchant was not read before, so no older data of it is cached.
    text = (await merchant.http.get("/configuration")).text
    assert '"minimumAmount":10.01' in text
    assert '"maximumAmount":999999999.99' in text


async def test_the_body_of_a_get_is_ignored(merchant: Merchant) -> None:
    headers = {"Content-Type": "text/plain", "x-no-contract": "1"}
    answer = await merchant.http.request("GET", "/configuration", content=b"{not json", headers=headers)
    assert answer.status_code == 200
