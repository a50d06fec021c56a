"""What a contact list, a map or a keyboard of another script puts into the fields: a person sees nothing wrong with it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from cuota.core.area_codes import is_us_mobile
from support.makers import Merchant, Running
from support.pages.visitor import Visitor
from support.phones import phone_number

OTHER_DIGITS = {
    "ascii": "0123456789",
    "arabic": "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669",
    "persian": "\u06f0\u06f1\u06f2\u06f3\u06f4\u06f5\u06f6\u06f7\u06f8\u06f9",
    "full width": "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19",
}


def in_script(text: str, script: str) -> str:
    return text.translate(str.maketrans("0123456789", OTHER_DIGITS[script]))


@pytest.mark.parametrize(
    "shape",
    [
        "\u202d+1 ({}) {}\u2011{}\u202c", "+1\u00a0{}\u00a0{}\u00a0{}", "{}\u2013{}\u2013{}", "\u200e{}.{}.{}",
        "\uff0b1\u3000\uff08{}\uff09{}\uff0d{}",
    ],
)  # fmt: skip
async def test_a_number_pasted_from_a_contact_list_gets_its_code(
    merchant: Merchant, visitor: Visitor, shape: str
) -> None:
    phone = phone_number()
    assert is_us_mobile(phone)
    await visitor.until("phone", await merchant.create())
    page = await visitor.send("phone", phone=shape.format(phone[:3], phone[3:6], phone[6:]))
    assert f"the number ending {phone[-2:]}" in page.text


@pytest.mark.parametrize("script", OTHER_DIGITS)
async def test_all_digits_may_be_those_of_another_script(
    service: Running, merchant: Merchant, visitor: Visitor, script: str
) -> None:
    phone, order = phone_number(), await merchant.create()
    typed = {"phone": phone, "code": "123456", "postcode": "94103"}
    page = await visitor.buy(order, **{name: in_script(text, script) for name, text in typed.items()})
    assert page.outcome == "approved"
    assert await paid_by(service, order) == service.context.vault.consumer_id(phone)


async def paid_by(service: Running, order: dict[str, Any]) -> UUID | None:
    sql = "SELECT consumer_id FROM plans WHERE order_id = $1"
    row = await service.context.pool.fetchrow(sql, UUID(order["orderId"]))
    return None if row is None else row["consumer_id"]


async def test_a_pasted_name_and_address_are_stored_without_invisible_characters(
    merchant: Merchant, visitor: Visitor
) -> None:
    pasted = {
        "given_names": "\u200f\u0645\u062d\u0645\u062f\u200f", "surname": "\u2068Ruiz\u2069", "email": "ana@mail.example\u200b",
        "address_line1": "1480\u00a0Mission\u202fStreet", "address_line2": "\u200eApt\u00a04", "city": "San\tFrancisco\ufeff",
    }  # fmt: skip
    page = await visitor.until("pay", await merchant.create(), phone=phone_number(), **pasted)
    for words in (
        "\u0645\u062d\u0645\u062f Ruiz",
        "ana@mail.example",
        "1480 Mission Street, Apt 4 San Francisco, CA",
    ):
        assert words in page.text
    for char in "\u200f\u2068\u200b\u202f\u200e\ufeff":
        assert char not in page.text


@pytest.mark.parametrize("name", ["\U0001f44d", "\u200b\u200f", "x" * 51, "x" * 200])
async def test_a_name_of_no_letters_or_too_many_is_still_refused(
    merchant: Merchant, visitor: Visitor, name: str
) -> None:
    await visitor.until("details", await merchant.create(), phone=phone_number())
    page = await visitor.send("details", given_names=name)
    assert page.status == 400
    assert "first name" in page.text


async def test_an_address_that_is_too_long_is_not_reported_as_missing(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.until("details", await merchant.create(), phone=phone_number())
    long = {"address_line1": "1" * 51, "address_line2": "2" * 51, "city": "c" * 51}
    page = await visitor.send("details", **long)
    for what in ("The street address", "The apartment, suite or floor", "The city"):
        assert page.text.count(f"{what} can have at most 50 characters.") == 2, "in the list and at the field"
    assert "Enter the" not in page.text
    assert long["address_line1"] in page.answer.text, "the text is kept"
