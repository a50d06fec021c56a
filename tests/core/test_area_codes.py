"""A number in an area code of another country, a toll-free number and a premium number are no US mobile numbers."""

from __future__ import annotations

import pytest

from cuota.core.area_codes import NOT_US_MOBILE, is_us_mobile

# One area code of each state, of the District of Columbia and of each territory.
OF_THE_UNITED_STATES = """205 907 480 501 213 303 203 302 202 305 404 808 208 312 317 515 316 502 504 207 301 617 313 612 601 314 406
    402 702 603 201 505 212 704 701 216 405 503 215 401 803 605 615 214 801 802 703 206 304 414 307 787 939 340 671 684 670"""


@pytest.mark.parametrize("area", OF_THE_UNITED_STATES.split())
def test_a_number_of_each_state_and_territory_is_accepted(area: str) -> None:
    assert is_us_mobile(f"{area}5550142")


@pytest.mark.parametrize(
    "area",
    [
        *("900", "800", "833", "844", "855", "866", "877", "888", "500", "700"),
        *("416", "604", "514", "902"),
        *("242", "246", "264", "268", "284", "345", "441", "473", "649", "658", "664", "721", "758", "767"),
        *("784", "809", "829", "849", "868", "869", "876"),
    ],
)
def test_a_number_that_is_premium_toll_free_or_of_another_country_is_refused(area: str) -> None:
    assert not is_us_mobile(f"{area}5550142")


def test_numbers_for_examples_are_accepted_and_other_texts_are_not() -> None:
    assert all(is_us_mobile(f"21255501{number:02}") for number in range(100))
    assert not is_us_mobile("")
    assert not is_us_mobile("212555014")
    assert not is_us_mobile("1125550142")


def test_every_area_code_in_the_table_has_three_digits_and_begins_with_two_to_nine() -> None:
    assert all(len(code) == 3 and code.isdigit() and code[0] in "23456789" for code in NOT_US_MOBILE)
