"""The name that consumers see: names that look alike are one text, or are refused."""

from __future__ import annotations

import pytest

from cuota.core.shown_name import ConfusingName, shown_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", ""),
        ("  Alder  &  Oak ", "Alder & Oak"),
        ("\uff33hop \uff11", "Shop 1"),
        ("Café Łódź", "Café Łódź"),
        ("Магазин 1", "Магазин 1"),
        ("香港茶", "香港茶"),
        ("Shop 1", "Shop 1"),
    ],
)  # fmt: skip
def test_a_name_is_shown_in_its_normal_form(text: str, name: str) -> None:
    assert shown_name(text, 60) == name


@pytest.mark.parametrize(
    "text",
    [
        "Shop 1\u034f",
        "Shop 1\u3164",
        "Shop 1\ufe0f",
        "Shop\u2800 1",
        "Shop\u200b 1",
        "Shop\u202e 1",
        "\u0405hop 1",
        "\u0391lpha",
        "x" * 61,
    ],
)
def test_a_name_that_looks_like_another_is_refused(text: str) -> None:
    with pytest.raises(ConfusingName):
        shown_name(text, 60)
