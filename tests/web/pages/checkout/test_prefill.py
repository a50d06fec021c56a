"""Which fields the checkout prefills, and for whom. A wrong value never blocks a consumer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cuota.core.merchant import BodyProfile
from support.makers import Merchant, Running, make_merchant, order_body
from support.pages.visitor import Visitor, address_of
from support.phones import phone_number

ADDRESS = {
    "addressLine1": "12 Prefill Street",
    "addressLine2": "Apt 9",
    "city": "Albany",
    "state": "NY",
    "postcode": "12207",
}
PERSON = {"givenNames": "Marisol", "surname": "Prefillson", "email": "marisol@prefill.example"}
PRIVATE = ("Marisol", "Prefillson", "marisol@prefill.example", "12 Prefill Street", "12207")


@pytest.fixture
async def lenient(service: Running) -> AsyncIterator[Merchant]:
    """A merchant with the lenient profile."""
    async with make_merchant(service, profile=BodyProfile.LENIENT) as made:
        yield made


async def named(merchant: Merchant, phone: str | None = None, **person: str) -> dict[str, Any]:
    """Make an order that names its shopper. `phone` may be empty."""
    phone = phone_number() if phone is None else phone
    consumer = {**PERSON, **person, **({"phoneNumber": phone} if phone else {})}
    body = order_body("100.00", consumer=consumer, billing=ADDRESS, shipping=ADDRESS)
    answer = await merchant.http.post("/order", json=body, headers={"x-lenient": "1"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def details(visitor: Visitor) -> dict[str, str]:
    return visitor.page.form("details")[1]


async def test_an_order_may_name_a_number_that_is_no_us_mobile_number_and_the_page_asks_for_another(
    merchant: Merchant, visitor: Visitor
) -> None:
    page = await visitor.open((await named(merchant, "4165554723"))["redirectUrl"])
    assert "The number ending in" not in page.text
    assert page.form("phone")[1]["phone"] == ""


async def test_the_order_s_number_is_offered_by_its_last_digits_and_its_data_is_filled_in_once_the_code_is_right(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await named(merchant, "2125554723")
    page = await visitor.open(order["redirectUrl"])
    assert "The number ending in 23" in page.text
    assert "phone" not in page.form("phone")[1]
    await visitor.send("phone")
    assert "••23" in visitor.page.text
    await visitor.send("code")
    shown = details(visitor)
    assert (shown["given_names"], shown["surname"], shown["email"]) == tuple(PERSON.values())
    assert (shown["address_line1"], shown["postcode"], shown["state"]) == ("12 Prefill Street", "12207", "NY")


async def test_a_stranger_with_the_link_learns_neither_the_shopper_s_data_nor_the_number(
    merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    order = await named(merchant, phone)
    page = await visitor.open(order["redirectUrl"])
    assert f"(•••) •••-••{phone[-2:]}" in page.text
    page = await visitor.open(f"{address_of(order)}?step=phone&other=1")
    assert page.form("phone")[1]["phone"] == ""
    await visitor.send("phone", phone=phone_number())
    await visitor.send("code")
    assert not any(
        details(visitor).get(name) for name in ("given_names", "surname", "email", "address_line1")
    )
    read = " ".join(answer.text for answer in visitor.answers)
    for private in (*PRIVATE, phone, f"{phone[3:6]}-{phone[6:]}", phone[3:]):
        assert private not in read


async def test_an_order_without_a_number_fills_in_no_personal_data(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await named(merchant, phone="")
    await visitor.until("details", order, phone=phone_number())
    shown = details(visitor)
    assert not any(value for name, value in shown.items() if name != "csrf")
    assert not any(private in answer.text for answer in visitor.answers for private in PRIVATE)


async def test_an_order_without_a_number_does_not_show_its_addresses_before_the_last_page(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await named(merchant, phone="")
    page = await visit().until("pay", order, phone=phone_number())
    assert "12 Prefill Street" not in page.answer.text


@pytest.mark.parametrize("surname", ["O'Brien", "O\u2019Neill", "St. John", "King Jr.", "J"])
async def test_a_name_with_an_apostrophe_or_a_period_is_accepted_and_stored_unchanged(
    service: Running, lenient: Merchant, visitor: Visitor, surname: str
) -> None:
    order = await named(lenient, surname=surname)
    await visitor.until("details", order)
    assert details(visitor)["surname"] == surname
    page = await visitor.send("details", **details(visitor))
    assert f"Marisol {surname}" in page.text
    assert (await visitor.send("pay")).outcome == "approved"


async def test_a_customer_of_a_strict_merchant_can_type_such_a_name_too(
    merchant: Merchant, visitor: Visitor
) -> None:
    page = await visitor.buy(
        await merchant.create(), given_names="D'Arcy", surname="St. John-O\u2019Neill Jr."
    )
    assert page.outcome == "approved"


async def test_the_error_about_an_invalid_name_says_what_to_do(merchant: Merchant, visitor: Visitor) -> None:
    await visitor.until("details", await merchant.create())
    page = await visitor.send("details", given_names="", surname="R2-D2")
    assert "Enter your first name." in page.text
    assert (
        "Write your last name in at most 50 letters, with spaces, dashes, apostrophes and periods"
        in page.text
    )


async def test_an_invalid_prefilled_value_is_dropped_and_the_others_are_kept(
    merchant: Merchant, visitor: Visitor
) -> None:
    billing = {**ADDRESS, "state": "ZZ", "postcode": "ABCDE"}
    order = await merchant.create(consumer={**PERSON, "phoneNumber": phone_number()}, billing=billing)
    await visitor.until("details", order)
    shown = details(visitor)
    assert (shown["state"], shown["postcode"]) == ("", "")
    assert (shown["surname"], shown["city"]) == ("Prefillson", "Albany")


async def test_going_back_to_the_phone_page_shows_the_number_that_this_browser_typed(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await merchant.create()
    visitor = visit()
    await visitor.until("code", order, phone="4155550177")
    page = await visitor.open(f"{address_of(order)}?step=phone")
    assert page.form("phone")[1]["phone"] == "4155550177"
    assert (await visit().open(order["redirectUrl"])).form("phone")[1]["phone"] == ""


async def test_a_wrong_number_typed_instead_of_the_order_s_can_be_corrected_in_its_field(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await named(merchant)
    await visitor.open(order["redirectUrl"])
    await visitor.open(f"{address_of(order)}?step=phone&other=1")
    page = await visitor.send("phone", phone="12345")
    assert (page.status, page.form("phone")[1]["phone"]) == (400, "12345")
    assert "ten digits" in page.text


async def test_before_the_first_text_the_page_says_what_the_consumer_agrees_to_by_continuing(
    merchant: Merchant, visitor: Visitor
) -> None:
    for order in (await merchant.create(), await named(merchant)):
        page = await visitor.open(order["redirectUrl"])
        for words in ("By continuing you agree", "Message and data rates may apply", "STOP", "HELP"):
            assert words in page.text
