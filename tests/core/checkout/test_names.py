"""Names that a person types on a page."""

from __future__ import annotations

import pytest

from cuota.core.consumer import is_name, is_typed_name, typed_name

NAMES = (
    "O'Brien", "O\u2019Neill", "St. John", "King Jr.", "J", "Ng", "Jean-Luc", "Jean\u2010Luc", "Zoe\u0308", "नमस्ते", "محمد", "李",
    "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "x" * 50, "e\u0301" * 50, "van 't Hoff",
)  # fmt: skip
NO_NAMES = (
    "",
    " ",
    ".",
    "-",
    "''",
    "R2-D2",
    "x" * 51,
    "<b>",
    "a@b",
    "a\nb",
    "a\tb",
    "a\0b",
    "a\u202eb",
    "Smith, Jr",
    "😀",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_name_is_accepted(name: str) -> None:
    assert is_typed_name(name)


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_text_that_is_no_name_is_refused(name: str) -> None:
    assert not is_typed_name(name)


@pytest.mark.parametrize(
    ("typed", "read"),
    [(" O'Brien ", "O'Brien"), ("St.\u00a0John", "St. John"), ("\u2018t Hooft", "\u2019t Hooft")],
)
def test_the_characters_that_a_phone_keyboard_inserts_into_a_name_are_replaced(typed: str, read: str) -> None:
    assert typed_name(typed) == read
    assert is_typed_name(read)


@pytest.mark.parametrize("name", ["O'Brien", "St. John", "King Jr."])
def test_the_stricter_rule_of_the_api_refuses_apostrophes_and_periods(name: str) -> None:
    assert not is_name(name)
