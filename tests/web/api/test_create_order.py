"""`POST /order` in the strict profile: each field's rule is tested just inside and just outside its limits."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from support.api.bodies import FULL, assert_refused, changed, failures
from support.makers import Merchant, order_body

ADDRESS_EDGES: list[tuple[str, list[object], list[tuple[object, str]]]] = [
    ("addressLine1", ["abc", "a" * 50], [("ab", "too_short"), ("a" * 51, "too_long"), ("", "too_short"), (None, "required")]),
    ("addressLine2", [None, "", "a" * 50], [("a" * 51, "too_long")]),
    ("city", ["Rye", "a" * 50], [("ab", "too_short"), ("a" * 51, "too_long"), (None, "required")]),
    ("state", ["NY", "XX"], [("N", "too_short"), ("NYC", "too_long"), ("", "too_short"), (None, "required")]),
    ("postcode", ["00501", "ABCDE"], [("1234", "too_short"), ("123456", "too_long"), (None, "required")]),
]  # fmt: skip
EDGES: list[tuple[str, list[object], list[tuple[object, str]]]] = [
    ("amount", ["100.00", 100, 100.5], [(None, "required"), (0, "out_of_range"), (-1, "out_of_range"), ("100.001", "invalid"), ("1" * 19, "invalid")]),
    ("consumer", [None, {}], []),
    ("consumer.phoneNumber", [None, "2002000000", "9999999999"], [("212555010", "invalid"), ("21255501000", "invalid"), ("1125550100", "invalid"), ("2121550100", "invalid"), ("", "invalid"), ("212-555-01", "invalid"), ("+12125550100", "invalid")]),
    ("consumer.givenNames", [None, "Jo", "J" * 50, "Anne-Marie", "José Luis", "e\u0301" * 50], [("J", "too_short"), ("J" * 51, "too_long"), ("e\u0301" * 51, "too_long"), ("e\u0301", "too_short"), ("J0rdan", "invalid"), ("O'Brien", "invalid"), ("--", "invalid"), ("", "too_short")]),
    ("consumer.surname", [None, "Li", "L" * 50, "李明"], [("L", "too_short"), ("L" * 51, "too_long"), ("R2", "invalid"), ("Ri_vera", "invalid")]),
    ("consumer.email", [None, "a@b.co", "a" * 237 + "@mail.example"], [("a" * 238 + "@mail.example", "too_long"), ("a@b", "invalid"), ("a b@c.de", "invalid"), ("@b.co", "invalid"), ("", "invalid")]),
    *[(f"{name}.{field}", good, bad) for name in ("billing", "shipping") for field, good, bad in ADDRESS_EDGES],
    ("billing", [None], []),
    ("description", [None, "", "Line one\nline two\tend", "d" * 5000], [("a\x07b", "control_character")]),
    ("items", [None, [], [{}], [{"name": "x"}] * 1000], [([{"name": "x"}] * 1001, "too_long")]),
    ("items[0].name", [None, "", "n" * 1000], [("n" * 1001, "too_long")]),
    ("items[0].sku", [None, "", "s" * 100], [("s" * 101, "too_long")]),
    ("items[0].quantity", [None, 0, 1.5, 1000], []),
    ("items[0].price", [None, 0, "1", 49.995], [("$1", "invalid"), ("", "invalid")]),
    ("items[0].description", [None, "", "d" * 500], []),
    ("merchant", [], [(None, "required")]),
    ("merchant.redirectConfirmUrl", ["https://shop.example/", "http://127.0.0.1:9/" + "a" * 2029], [(None, "required"), ("", "invalid"), ("http://127.0.0.1:9/" + "a" * 2030, "invalid")]),
    ("merchant.redirectCancelUrl", ["https://shop.example/a?b=c#d"], [(None, "required"), ("shop.example", "invalid")]),
    ("merchant.statusCallbackUrl", [None, "", "https://shop.example/hook"], [("shop", "invalid")]),
    ("merchantReference", ["", "r", "r" * 100, 1042, "Ω" * 100], [(None, "required"), ("r" * 101, "too_long"), ("a\nb", "control_character")]),
    ("taxAmount", [None, 0, "0.00", "118.85"], [(-1, "out_of_range"), ("118.86", "out_of_range"), ("1.005", "invalid"), ("1" * 19, "invalid")]),
    ("shippingAmount", [None, 0, "111.08"], [("-0.01", "out_of_range"), (1.005, "invalid")]),
    ("merchantFeeForPaymentPlan", [None, 0, "0.01", "119.96"], [("-0.01", "out_of_range"), ("0.001", "invalid"), ("119.97", "out_of_range")]),
    ("metadata", [None, {}, {f"k{n}": "v" for n in range(50)}, {"k": "v" * 500}, {"k": None}], [({f"k{n}": "v" for n in range(51)}, "too_long"), ({"k": "v" * 501}, "too_long")]),
]  # fmt: skip
GOOD = [(path, value) for path, good, _ in EDGES for value in good]
BAD = [(path, value, code) for path, _, bad in EDGES for value, code in bad]


def brief(value: object) -> str:
    return repr(value)[:24]


@pytest.mark.parametrize(("path", "value"), GOOD, ids=brief)
async def test_a_field_at_the_limit_of_its_rule_is_accepted(
    merchant: Merchant, path: str, value: object
) -> None:
    answer = await merchant.http.post("/order", json=changed(path, value))
    assert answer.status_code == 200, answer.text
    assert answer.json()["warnings"] == []


@pytest.mark.parametrize(("path", "value", "code"), BAD, ids=brief)
async def test_a_field_beyond_its_limit_is_refused_and_the_error_names_it(
    merchant: Merchant, path: str, value: object, code: str
) -> None:
    answer = await merchant.http.post("/order", json=changed(path, value))
    assert_refused(answer, 400, "validation_failed")
    named = "taxAmount" if (path, value) == ("shippingAmount", "111.09") else path
    assert failures(answer) == [(named, code)]


async def test_a_very_long_name_of_combining_marks_is_refused_without_composing_it(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The time to compose such a text grows with the square of its length: 16 seconds for 128,000 marks.
    normalize = unicodedata.normalize
    composed: list[int] = []

    def counted(form: Any, text: str) -> str:
        composed.append(len(text))
        return normalize(form, text)

    monkeypatch.setattr(unicodedata, "normalize", counted)
    answer = await merchant.http.post(
        "/order", json=changed("consumer.givenNames", "a" + "\u0301\u0316" * 8000)
    )
    assert failures(answer) == [("consumer.givenNames", "too_long")]
    assert max(composed, default=0) <= 200


WRONG_TYPES: list[tuple[str, list[object]]] = [
    ("amount", [True, [10], {}]),
    ("consumer", ["x", [], 7, True]),
    ("consumer.phoneNumber", [2125550100, ["2125550100"]]),
    ("consumer.givenNames", [7, {}]),
    ("consumer.email", [False]),
    ("billing", ["x", []]),
    ("billing.postcode", [94103]),
    ("shipping", [1]),
    ("description", [1, {}]),
    ("items", [{}, "x", 1]),
    ("items[0]", ["x", None, []]),
    ("items[0].name", [1]),
    ("items[0].sku", [42]),
    ("items[0].quantity", [True, [], "2"]),
    ("items[0].price", [True, {}]),
    ("merchant", ["x", []]),
    ("merchant.redirectConfirmUrl", [1, []]),
    ("merchant.statusCallbackUrl", [1, False]),
    ("merchantReference", [True, 1.5, [], {}]),
    ("taxAmount", [True, []]),
    ("metadata", ["x", [], {"k": 1}, {"k": {"deep": "x"}}]),
    ("merchantFeeForPaymentPlan", [[]]),
]
WRONG = [(path, value) for path, values in WRONG_TYPES for value in values]


@pytest.mark.parametrize(("path", "value"), WRONG, ids=brief)
async def test_a_wrong_json_type_is_a_malformed_request(merchant: Merchant, path: str, value: object) -> None:
    answer = await merchant.http.post("/order", json=changed(path, value))
    assert_refused(answer, 400, "malformed_request")
    assert failures(answer) == [(path, "wrong_type")]


async def test_all_failures_are_reported_together(merchant: Merchant) -> None:
    body: dict[str, Any] = {
        "amount": "1.005",
        "consumer": {"phoneNumber": "12", "givenNames": "J", "surname": "1a", "email": "x"},
        "billing": {"city": "ab"},
        "items": [{"sku": "s" * 101}, {"name": "n" * 1001}],
        "merchant": {"redirectConfirmUrl": "x"},
        "taxAmount": -1,
        "metadata": {"k": "v" * 501},
    }
    answer = await merchant.http.post("/order", json=body)
    assert_refused(answer, 400, "validation_failed")
    assert {field for field, _ in failures(answer)} == {
        "amount", "taxAmount", "merchantReference", "consumer.phoneNumber", "consumer.givenNames",
        "consumer.surname", "consumer.email", "billing.addressLine1", "billing.city", "billing.state",
        "billing.postcode", "items[0].sku", "items[1].name", "merchant.redirectConfirmUrl",
        "merchant.redirectCancelUrl", "metadata",
    }  # fmt: skip


@pytest.mark.parametrize("amount", ["1.00", "2000.00", 1, 2000])
async def test_the_minimum_and_the_maximum_of_the_merchant_s_range_are_allowed(
    merchant: Merchant, amount: object
) -> None:
    await merchant.create(amount)


@pytest.mark.parametrize("amount", ["0.99", "2000.01", "9999999999999999.99", 123456789012345678])
async def test_an_amount_outside_the_merchant_s_range_is_refused_with_the_range(
    merchant: Merchant, amount: object
) -> None:
    answer = await merchant.http.post("/order", json=order_body(amount))
    assert_refused(answer, 400, "amount_out_of_range")
    assert failures(answer) == [("amount", "out_of_range")]
    assert "2000.00" in answer.json()["message"]


async def test_null_is_the_same_as_absent(merchant: Merchant) -> None:
    absent = await merchant.read(await merchant.create())
    nulls = dict.fromkeys(set(FULL) - {"amount", "merchant", "merchantReference"})
    given = await merchant.read(await merchant.create(**nulls))
    own = {"orderId", "token", "createdDateTime", "expiryDateTime"}
    assert {n: v for n, v in given.items() if n not in own} == {
        n: v for n, v in absent.items() if n not in own
    }


async def test_a_reference_may_be_an_integer_of_any_length(merchant: Merchant) -> None:
    digits = "9" * 60
    created = await merchant.http.post(
        "/order",
        content=json.dumps(order_body()).replace('"A-1042"', digits),
        headers={"Content-Type": "application/json"},
    )
    assert created.status_code == 200, created.text
    assert (await merchant.read(created.json()))["merchantReference"] == digits
