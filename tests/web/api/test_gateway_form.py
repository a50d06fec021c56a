"""`/orders/authorize` as a form or a link: dotted field names, their signature, and the page for a wrong signature."""

from __future__ import annotations

import html
from urllib.parse import urlencode

import pytest

from cuota.core.merchant import BodyProfile
from cuota.core.webhook.signature import pay_signature
from support.api.bodies import assert_refused, failures
from support.gateway import (
    SHOP,
    Fields,
    at_once,
    form,
    form_fields,
    get_link,
    orders_of,
    post_form,
    record_of,
    signed,
)
from support.makers import Merchant, Running, make_merchant

FULL: dict[str, str | None] = {
    "ORDER.Customer.firstName": "José",
    "order.customer.lastname": "Rivera-Smith",
    "order.email": "jose+shop@mail.example",
    "order.billingAddress.line1": "12 Main Street ~ *rear*",
    "order.billingaddress.city": "New York",
    "order.billingAddress.state": "NY",
    "order.billingAddress.postalCode": "10001",
    "order.lineItems[0].name": "Linen & silk",
    "order.lineItems[0].quantity": "2",
    "order.lineitems[0].isPreOrder": "TRUE",
    "order.lineItems.7.NAME": "Mug",
    "order.lineItems.7.price": "24.99",
    "order.taxAmount": "8.88",
    "order.shippingAmount": "",
    "metadata.Cart.Id": "c 1",
    "additionalData.customerloggedin": "true",
    "additionalData.customerTransactionCount": "7",
    "utf8": "✓",
}


async def test_a_signed_form_leads_to_its_checkout_with_all_its_fields(merchant: Merchant) -> None:
    answer = await form(merchant, **FULL)
    record = await record_of(merchant, answer)
    assert record["consumer"] == {
        "phoneNumber": None, "givenNames": "José", "surname": "Rivera-Smith", "email": "jose+shop@mail.example",
    }  # fmt: skip
    assert record["billing"]["addressLine1"] == "12 Main Street ~ *rear*"
    first, second = record["items"]
    assert (first["name"], first["quantity"], first["isPreOrder"]) == ("Linen & silk", 2, True)
    assert (second["name"], second["price"], second["quantity"]) == ("Mug", 24.99, None)
    assert (record["taxAmount"], record["shippingAmount"]) == (8.88, None)
    assert record["metadata"] == {"Cart.Id": "c 1"}
    # Fields that a shop's framework adds to every form are ignored, and the warnings name them.
    assert [(warning["field"], warning["code"]) for warning in record["warnings"]] == [
        ("utf8", "unknown_field")
    ]
    sql = "SELECT additional->'fields' AS fields FROM sdk_checkouts WHERE merchant_id = $1"
    (row,) = await merchant.service.context.pool.fetch(sql, merchant.merchant_id)
    assert row["fields"] == '{"customerLoggedIn":"true","customerTransactionCount":"7"}'


async def test_a_browser_reaches_the_same_order_by_form_and_by_link(merchant: Merchant) -> None:
    fields = signed(merchant, form_fields(merchant))
    posted = await post_form(merchant, fields)
    assert posted.status_code == 303
    assert posted.headers["cache-control"] == "no-store"
    assert posted.headers["location"] in html.unescape(posted.text)
    followed = await get_link(merchant, fields)
    turned = await post_form(merchant, fields[::-1])
    assert {each.headers["location"] for each in (posted, followed, turned)} == {posted.headers["location"]}
    assert await orders_of(merchant) == 1


async def test_the_same_signed_form_sent_64_times_at_once_makes_one_order(merchant: Merchant) -> None:
    fields = signed(merchant, form_fields(merchant))
    address = await at_once(lambda: post_form(merchant, fields))
    assert await orders_of(merchant) == 1
    assert (await post_form(merchant, fields)).headers["location"] == address


async def test_query_parameters_of_a_posted_form_are_ignored(merchant: Merchant) -> None:
    fields = signed(merchant, form_fields(merchant))
    async with merchant.service.client() as page:
        answer = await page.post("/orders/authorize?order.amount=1.00&order.amount=2.00", data=dict(fields))
    assert (await record_of(merchant, answer))["amount"] == 100


@pytest.mark.parametrize(
    "change",
    [
        ("order.amount", "1.00"),
        ("order.AMOUNT", "1.00"),
        ("redirectcancelurl", "http://evil.example/"),
        ("x", ""),
    ],
)
async def test_a_field_that_was_not_signed_breaks_the_signature(
    merchant: Merchant, change: tuple[str, str]
) -> None:
    fields = signed(merchant, form_fields(merchant))
    changed = [(name, change[1] if name == change[0] else value) for name, value in fields]
    more = changed if changed != fields else [*fields, change]
    assert_refused(await post_form(merchant, more, Accept="*/*"), 401, "invalid_signature")
    page = await post_form(merchant, more)
    assert page.status_code == 401
    # The form is not signed, so no link on the page leads to an address from the form.
    assert f'href="{SHOP}' not in page.text
    assert 'href="http://evil.example' not in page.text
    assert "location" not in page.headers
    assert await orders_of(merchant) == 0


async def test_an_unknown_merchant_gets_the_same_answer_as_a_wrong_signature(merchant: Merchant) -> None:
    fields = signed(merchant, form_fields(merchant, merchantId="6f1c1d60-0000-4000-8000-000000000000"))
    wrong = [(name, "x" * 44 if name == "signature" else value) for name, value in fields]
    right_id = [(name, str(merchant.merchant_id) if name == "merchantId" else value) for name, value in wrong]
    first, second = [(await post_form(merchant, each, Accept="*/*")).json() for each in (wrong, right_id)]
    assert (first["code"], first["status"], first.keys()) == ("invalid_signature", 401, second.keys())
    assert first["message"] == second["message"]


async def test_the_sandbox_shows_the_text_that_is_signed(merchant: Merchant) -> None:
    fields = form_fields(merchant, **{"order.firstName": "Zoë ~*"})
    answer = await post_form(merchant, [*fields, ("signature", "no")], Accept="*/*")
    said = answer.json()
    text = urlencode(sorted(fields))
    assert said["hint"].endswith(f"The text that is signed: {text}")
    good = pay_signature(merchant.signing_secret, text.encode())
    assert (await post_form(merchant, [*fields, ("Signature", good)])).status_code == 303


TWICE = [
    ("order.amount", "order.amount"), ("order.amount", "Order.Amount"), ("foo", "FOO"),
    ("order.lineItems[0].name", "order.lineItems.0.name"), ("order.lineItems[1].sku", "order.lineItems[01].SKU"),
    ("metadata.a", "metadata.A"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), TWICE)
async def test_a_duplicate_field_is_an_error(merchant: Merchant, first: str, second: str) -> None:
    fields = [*form_fields(merchant, **{"order.amount": None}), (first, "5.00"), (second, "5.00")]
    if "amount" not in first:
        fields.append(("order.amount", "5.00"))
    answer = await post_form(merchant, signed(merchant, fields), Accept="*/*")
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [(second, "duplicate")]


@pytest.mark.parametrize("name", ["merchantId", "MERCHANTID", "signature", "SIGNATURE"])
async def test_the_merchant_id_and_the_signature_may_occur_only_once(merchant: Merchant, name: str) -> None:
    fields = signed(merchant, form_fields(merchant))
    value = dict(fields)["signature" if "sig" in name.lower() else "merchantId"]
    assert_refused(
        await post_form(merchant, [*fields, (name, value)], Accept="*/*"), 400, "validation_failed"
    )


WRONG = [
    ("capture", "yes", "invalid"), ("order.lineItems[0].quantity", "two", "invalid"),
    ("order.lineItems[3].isPreOrder", "1", "invalid"), ("order.lineItems[3].price", "$1", "invalid"),
    ("order.lineItems[3].releaseDate", "soon", "invalid"), ("order.amount", "1.005", "invalid"),
    ("order.amount", "", "required"), ("checkoutFlow", "fast", "invalid"), ("metadata.", "x", "too_short"),
    ("redirectConfirmUrl", "javascript:alert(1)", "invalid"), ("integrationType", "virtual_card", "invalid"),
    ("order.lineItems[999999999].name", "x", "invalid"), ("order.lineItems[1000].name", "x", "invalid"),
    ("order.lineItems[-1].name", "x", "invalid"), ("order.lineItems[].name", "x", "invalid"),
    ("order.lineItems.name", "x", "invalid"), ("order.firstName", "a\x01b", "control_character"),
    ("order.lineItems[0].name", "a\nb", "control_character"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "code"), WRONG)
async def test_the_error_names_a_broken_field_as_it_was_sent(
    merchant: Merchant, name: str, value: str, code: str
) -> None:
    answer = await form(merchant, **{name: value})
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [("metadata" if name == "metadata." else name, code)]
    assert await orders_of(merchant) == 0


async def test_the_lenient_profile_drops_broken_prefill_with_a_warning(service: Running) -> None:
    async with make_merchant(service, profile=BodyProfile.LENIENT) as merchant:
        more = {
            "order.lineItems[5].quantity": "two",
            "order.lineItems[x\x01].name": "x",
            "order.lineItems[5].name": "y" * 1001,
        }
        answer = await form(merchant, **more, **{"order.taxAmount": "8.880000000000001"})
        assert {warning["field"] for warning in answer.json()["warnings"]} == {
            "order.lineItems[5].quantity", "order.lineItems[5].name", "order.lineItems[x?].name",
        }  # fmt: skip
        assert (await record_of(merchant, answer))["taxAmount"] == 8.88


HOSTILE: list[Fields] = [
    [(".".join("a" * 40), "x")], [("order." * 40 + "amount", "x")], [("__proto__", "x"), ("__proto__.amount", "1")],
    [("constructor.prototype.x", "y"), ("order.__proto__.amount", "1")], [("order.amount.amount", "1")], [("order", "{}")],
    [("", "x")], [("[0]", "x")], [("\x01\x02", "\x03")], [("order.\u212austomer.firstName", "K")], [("\U0001f600", "x"), ("\uffff", "y")],
]  # fmt: skip


@pytest.mark.parametrize("more", HOSTILE, ids=lambda more: repr(more[0][0])[:20])
async def test_unknown_field_names_are_signed_and_ignored(merchant: Merchant, more: Fields) -> None:
    answer = await post_form(merchant, signed(merchant, [*form_fields(merchant), *more]))
    record = await record_of(merchant, answer)
    assert (record["amount"], record["consumer"], record["items"]) == (100, None, None)


async def test_an_unreadable_form_is_refused_before_the_signature_is_checked(merchant: Merchant) -> None:
    fields = signed(merchant, form_fields(merchant))
    many = [*fields, *((f"f{n}", "") for n in range(5_000))]
    raw = urlencode(fields).encode()
    for body in (urlencode(many).encode(), raw + b"&a=%ff", raw + b"&a=%00", raw + "&ä=1".encode()):
        assert_refused(await post_form(merchant, body, Accept="*/*"), 400, "malformed_request")
    for body in (b"", b"&&&", b"merchantId", b"merchantId=7"):
        assert_refused(await post_form(merchant, body, Accept="*/*"), 400, "validation_failed")
    large = raw + b"&description=" + b"x" * 262_144
    assert_refused(await post_form(merchant, large, Accept="*/*"), 413, "body_too_large")
    latin = {"Content-Type": "application/x-www-form-urlencoded; charset=latin-1"}
    assert_refused(await post_form(merchant, raw, Accept="*/*", **latin), 415, "unsupported_media_type")
    assert (await post_form(merchant, large)).headers["content-type"].startswith("text/html")
    assert await orders_of(merchant) == 0


async def test_a_thousand_line_items_are_accepted(merchant: Merchant) -> None:
    items: dict[str, str | None] = {f"order.lineItems[{n}].name": f"Item {n}" for n in range(1000)}
    record = await record_of(merchant, await form(merchant, **items))
    assert [item["name"] for item in record["items"]] == [f"Item {n}" for n in range(1000)]
