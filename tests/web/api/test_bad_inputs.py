"""Inputs that break payment services, for `POST /order`: one test each row of the list, B the body, U addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api.bodies import JSON, assert_refused, changed, failures, post, with_literal
from support.makers import Merchant, order_body

BODY = json.dumps(order_body("10.00"))
MALFORMED, INVALID = "malformed_request", "validation_failed"


def inside(literal: str) -> bytes:
    """A good body with one more field, whose value is this JSON text."""
    return (BODY[:-1] + f',"extra":{literal}}}').encode()


MALFORMED_BODIES: dict[str, list[bytes]] = {
    "B01 empty": [b"", b" ", b"\n"],
    "B02 trailing comma": [b'{"amount":1,}', BODY[:-1].encode() + b",}"],
    "B03 something after it": [b'{"amount":10}garbage', BODY.encode() + b"{}", BODY.encode() + b"\x00"],
    "B05 byte order mark": [b"\xef\xbb\xbf" + BODY.encode()],
    "B06 utf-16 and utf-32": [BODY.encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le")],
    "B07 not utf-8": [inside('"\udcff"'.encode("utf-8", "surrogateescape").decode("latin-1")).replace("ÿ".encode(), b"\xff"), BODY.encode().replace(b"A-1042", b"\xc0\xaf"), BODY.encode().replace(b"A-1042", b"\xed\xa0\x80"), b"\xff"],
    "B09 a NUL in a text": [BODY.replace("A-1042", "a\\u0000b").encode(), inside('"\\u0000"'), inside('{"\\u0000":1}')],
    "B09 half a surrogate pair": [BODY.replace("A-1042", "\\ud800").encode(), inside('"\\udc00"'), inside('["\\ud83d"]')],
    "B10 a raw control byte": [BODY.encode().replace(b"A-1042", b"a\x01b"), BODY.encode().replace(b"A-1042", b"a\nb")],
    "B11 deep": [inside("[" * depth + "]" * depth) for depth in (32, 2_000, 100_000)] + [inside("[" * 2_000), inside('{"a":' * 40 + "1" + "}" * 40)],
    "B13 a key twice": [b'{"amount":1,"amount":999}', inside('{"a":1,"a":1}'), BODY[:-1].encode() + b',"amount":"10.00"}'],
    "B19 no number": [with_literal("amount", text) for text in ("NaN", "Infinity", "-Infinity")] + [inside("NaN")],
    "B25 another type": [with_literal("amount", text) for text in ("true", "[10]", "{}", "false")],
    "B27 no JSON number": [with_literal("amount", text) for text in ("010", "+10", ".5", "5.", "0x10", "1_000", "1e", "--1")],
    "no object": [b"[]", b'"x"', b"1", b"null", b"true"],
    "an exponent beyond all bounds": [with_literal("amount", "1e999999999999999999999")],
}  # fmt: skip


@pytest.mark.parametrize("row", MALFORMED_BODIES)
async def test_a_body_that_is_not_json_is_malformed(merchant: Merchant, row: str) -> None:
    for content in MALFORMED_BODIES[row]:
        assert_refused(await post(merchant, content), 400, MALFORMED)


async def test_nesting_of_32_is_read(merchant: Merchant) -> None:
    # The body itself is the first level.
    assert (await post(merchant, inside("[" * 31 + "]" * 31))).status_code == 200
    quoted = json.dumps("[" * 100 + '\\"{{')
    assert (await post(merchant, inside(quoted))).status_code == 200


UNUSABLE_AMOUNTS = [
    ("B17", "null"),
    *[("B18", text) for text in ("0", "0.00", "-0", "-0.0", "-1", "1e-400", "0.001", '"0"', '"-1"')],
    *[("B21", text) for text in ("1" * 5_000, "-" + "1" * 5_000, "1." + "0" * 5_000 + "1", "1e4999", "1e400", '"' + "1" * 5_000 + '"')],
    *[("B22", text) for text in ("1234567890123456789", "12345678901234567.89", '"1234567890123456789"')],
    *[("B25", text) for text in ('"10,00"', '""', '"1e1"', '"ten"')],
]  # fmt: skip


@pytest.mark.parametrize(("row", "literal"), UNUSABLE_AMOUNTS, ids=lambda text: text[:20])
async def test_an_amount_that_cannot_be_is_refused(merchant: Merchant, row: str, literal: str) -> None:
    answer = await post(merchant, with_literal("amount", literal))
    assert_refused(answer, 400, INVALID)
    assert [field for field, _ in failures(answer)] == ["amount"]


async def test_b23_18_digits_are_an_amount_and_out_of_range(merchant: Merchant) -> None:
    answer = await post(merchant, with_literal("amount", "9999999999999999.99"))
    assert_refused(answer, 400, "amount_out_of_range")


FIELDS: dict[str, list[tuple[str, object]]] = {
    "B29 included in amount": [("taxAmount", "119.97"), ("taxAmount", "-0.01"), ("taxAmount", -5)],
    "B30 the same format": [("taxAmount", "1.005"), ("taxAmount", 10**18), ("shippingAmount", 0.001), ("shippingAmount", "1" * 19)],
    "B31 reference": [("merchantReference", None)],
    "B33 merchant": [("merchant", None), ("merchant.redirectConfirmUrl", None), ("merchant.redirectCancelUrl", None)],
    "B34 phone": [("consumer.phoneNumber", text) for text in ("1234567890", "0212555010", "212555010", "21255501000", "+12125550100", "(212)555-0100", "212 555 0100", "2120550100")],
    "B35 digits of other scripts": [("consumer.phoneNumber", text) for text in ("\u0662\u0661\u0662\u0665\u0665\u0665\u0660\u0661\u0660\u0660", "\uff12\uff11\uff12\uff15\uff15\uff15\uff10\uff11\uff10\uff10")],
    "B38 no letters": [("consumer.givenNames", f"Jo{char}rdan") for char in ("\u202e", "\u200b", "\ufeff", "\n", "\t", "\u2028", "1", ".", "\U0001f600")],
    "B39 email": [("consumer.email", text) for text in ("a" * 238 + "@mail.example", "a@b", "a@@b.c", "a b@c.de", "x@y.zz\r\nBcc: q", "x@y.z\r\nBcc: q", "@b.co", "a@.co", ".a@b.co", "a@b..co")],
    "B41 items": [("items", [{}] * 1001), ("items[0].name", "n" * 1001), ("items[0].sku", "s" * 101), ("items[0].price", "1 USD")],
    "B47 log injection": [("merchantReference", 'a\n{"level":"fatal"}'), ("merchantReference", "a\r\nb"), ("merchantReference", "\x1b[31m"), ("merchantReference", "\x85")],
    "S16 the fee": [("merchantFeeForPaymentPlan", "-1"), ("merchantFeeForPaymentPlan", "1.005")],
}  # fmt: skip


@pytest.mark.parametrize("row", FIELDS)
async def test_a_field_that_breaks_its_rule_is_named(merchant: Merchant, row: str) -> None:
    for path, value in FIELDS[row]:
        answer = await merchant.http.post("/order", json=changed(path, value))
        assert_refused(answer, 400, INVALID)
        assert [field for field, _ in failures(answer)] == [path], value


async def test_b29_tax_and_shipping_together_are_included_in_amount(merchant: Merchant) -> None:
    body = order_body("10.00", taxAmount="6.00", shippingAmount="4.01")
    assert_refused(await merchant.http.post("/order", json=body), 400, INVALID)
    await merchant.create("10.00", taxAmount="6.00", shippingAmount="4.00")


@pytest.mark.parametrize(
    ("path", "value"),
    [("items", {"0": {}}), ("items", "x"), ("items[0].name", 1), ("merchantReference", {}), ("merchantReference", 1.5)],
)  # fmt: skip
async def test_b31_b41_another_json_type_is_malformed(merchant: Merchant, path: str, value: object) -> None:
    assert_refused(await merchant.http.post("/order", json=changed(path, value)), 400, MALFORMED)


async def test_b41_a_quantity_that_is_no_number_is_malformed(merchant: Merchant) -> None:
    assert_refused(await post(merchant, inside('1,"items":[{"quantity":NaN}]')), 400, MALFORMED)


async def test_b41_a_price_as_text_is_a_price(merchant: Merchant) -> None:
    record = await merchant.read(await merchant.create(items=[{"price": "1"}]))
    assert record["items"][0]["price"] == 1


async def test_b42_a_text_of_1_mb_is_too_large(merchant: Merchant) -> None:
    body = order_body("10.00", description="d" * 1_000_000)
    assert_refused(await merchant.http.post("/order", json=body), 413, "body_too_large")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/json; charset=utf-16"])
async def test_b14_b15_another_media_type_is_415(merchant: Merchant, kind: str) -> None:
    answer = await merchant.http.post("/order", content=BODY, headers={"Content-Type": kind})
    assert_refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "text", ['"><script>alert(1)</script>', "{{7*7}}", "${7*7}", "'; DROP TABLE orders; --"]
)
async def test_b45_markup_is_text_and_stays_text(merchant: Merchant, text: str) -> None:
    created = await merchant.create(description=text, items=[{"name": text}], merchantReference=text)
    record = await merchant.read(created)
    assert record["description"] == record["items"][0]["name"] == record["merchantReference"] == text


ADDRESSES: dict[str, list[str]] = {
    "U02": ["data:text/html,x", "file:///etc/passwd", "ftp://a.example/", "blob:https://a.example/1", "vbscript:x", "about:blank", "javascript:alert(1)", "java\tscript:alert(1)"],
    "U03": ["//evil.example", "/path", "https:evil.example", "https:///evil.example", "https:\\\\evil.example", "https:/evil.example", "", " ", "https://", "http://?x", "evil.example"],
    "U04": ["https://evil.example\\@good.example/", "https://good.example\\.evil.example/", "https://good.example/\\x"],
    "U06": ["https://user:pw@good.example/", "https://user@good.example/", "https://@good.example/", "https://:@good.example/"],
    "U07": ["https://good.example:99999/", "https://good.example:0/", "https://good.example:443abc/", "https://good.example:/", "https://[::1/", "https://%67ood.example/", "https://good..example/", "https://-good.example/"],
    "U08": ["https://g\u043e\u043ed.example/", "https://good\u3002example/", "https://\uff47ood.example/", "https://shop.example/caf\u00e9"],
    "controls": ["https://good.example/\r\nSet-Cookie: a=b", "https://good.example/\t", " https://good.example/", "https://good.example/ ", "https://good.example/\x7f", "https://good.example/a b", "https://good.example/\u202e"],
    "too long": ["https://good.example/" + "a" * 2028],
}  # fmt: skip


@pytest.mark.parametrize("row", ADDRESSES)
@pytest.mark.parametrize("name", ["redirectConfirmUrl", "redirectCancelUrl", "statusCallbackUrl"])
async def test_an_address_that_a_browser_reads_otherwise_is_refused(
    merchant: Merchant, row: str, name: str
) -> None:
    for address in ADDRESSES[row]:
        if name == "statusCallbackUrl" and address == "":
            continue  # means none
        answer = await merchant.http.post("/order", json=changed(f"merchant.{name}", address))
        assert_refused(answer, 400, INVALID)
        assert [field for field, _ in failures(answer)] == [f"merchant.{name}"], address


@pytest.mark.parametrize(
    "address",
    ["http://localhost:3000/", "https://shop.example", "https://SHOP.example:8443/a?b=c&d#e", "http://[::1]:8000/x", "https://xn--80ak6aa92e.example/", "http://127.0.0.1:9/%2e%2e?u=https://other.example/"],
)  # fmt: skip
async def test_u10_an_absolute_address_is_accepted_in_the_sandbox(merchant: Merchant, address: str) -> None:
    answer = await merchant.http.post("/order", json=changed("merchant.redirectConfirmUrl", address))
    assert answer.status_code == 200, answer.text
    record: Any = await merchant.read(answer.json())
    kept = record["merchant"]["redirectConfirmUrl"]
    assert kept.lower().rstrip("/").startswith(address.lower().rstrip("/"))


async def test_u10_plain_http_is_refused_in_production() -> None:
    from cuota.web.addresses import BadAddress, read_address

    assert read_address("https://shop.example/", https_only=True)
    with pytest.raises(BadAddress, match="https"):
        read_address("http://shop.example/", https_only=True)


def test_the_bodies_of_these_tests_are_good_but_for_what_they_change() -> None:
    assert json.loads(inside("1"))["extra"] == 1
    assert JSON["Content-Type"] == "application/json"
