"""Which businesses are accepted, and how each wrong field is explained."""

from __future__ import annotations

import pytest

from cuota.core.onboarding.business import BusinessType, read_business
from cuota.core.onboarding.problem import BadOnboarding
from support.onboarding import BUSINESS


def errors_of(**changed: str) -> dict[str, str]:
    with pytest.raises(BadOnboarding) as caught:
        read_business({**BUSINESS, **changed})
    return caught.value.errors


def test_a_business_is_read_as_it_was_typed() -> None:
    found = read_business(BUSINESS)
    assert (found.legal_name, found.trading_name, found.type) == (
        "Northwind Outfitters LLC",
        "Northwind",
        BusinessType.LLC,
    )
    assert (found.ein, found.masked_ein) == ("12-3456789", "••-•••6789")
    assert found.address.postcode == "94103"


@pytest.mark.parametrize("typed", ["123456789", "12-3456789", "12 345 6789", "1-2-3-4-5-6-7-8-9"])
def test_an_ein_has_nine_digits_in_any_grouping(typed: str) -> None:
    assert read_business({**BUSINESS, "ein": typed}).ein == "12-3456789"


@pytest.mark.parametrize(
    "typed", ["", "12345678", "1234567890", "12-345678a", "\N{FULLWIDTH DIGIT ONE}23456789", "12_3456789"]
)
def test_another_text_is_not_an_ein(typed: str) -> None:
    assert "nine digits" in errors_of(ein=typed)["ein"]


@pytest.mark.parametrize("prefix", ["00", "07", "17", "28", "49", "69", "89", "97"])
def test_a_prefix_that_the_irs_never_assigned_is_refused(prefix: str) -> None:
    assert f"No EIN begins with {prefix}" in errors_of(ein=f"{prefix}3456789")["ein"]


@pytest.mark.parametrize("prefix", ["01", "16", "27", "48", "68", "77", "88", "95", "98", "99"])
def test_every_assigned_prefix_is_accepted(prefix: str) -> None:
    assert read_business({**BUSINESS, "ein": f"{prefix}3456789"}).ein == f"{prefix}-3456789"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("northwind.example", "https://northwind.example"),
        ("http://northwind.example:8080/shop", "http://northwind.example:8080/shop"),
        ("https://www.northwind.example/a%20b", "https://www.northwind.example/a%20b"),
    ],
)
def test_a_website_may_be_typed_without_https(typed: str, kept: str) -> None:
    assert read_business({**BUSINESS, "website": typed}).website == kept


@pytest.mark.parametrize(
    "typed",
    ["", "northwind", "javascript:alert(1)", "https://user@northwind.example", "https://a b.example", "x" * 201,
     "https://evil.example\\@good.example/", "https://-a.example", "https://northwind.example/\n"],
)  # fmt: skip
def test_another_text_is_not_a_website(typed: str) -> None:
    assert "website" in errors_of(website=typed)


def test_the_errors_name_all_wrong_fields_in_the_order_of_the_form() -> None:
    empty = errors_of(**dict.fromkeys(BUSINESS, ""))
    named = ["legal_name", "ein", "type", "website", "address_line1", "city", "state", "postcode", "sells"]
    assert list(empty) == named


def test_a_trading_name_that_equals_the_legal_name_is_empty() -> None:
    assert read_business({**BUSINESS, "trading_name": BUSINESS["legal_name"]}).trading_name == ""


def test_a_card_number_in_the_wrong_field_is_not_stored() -> None:
    found = read_business({**BUSINESS, "sells": "Tents. 4242 4242 4242 4242"})
    assert "4242 4242 4242 4242" not in found.sells
