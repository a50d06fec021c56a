"""Names in files for a bank are ASCII, and never empty."""

from __future__ import annotations

import pytest

from cuota.core.payout.bank_order import plain


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Łódź & Søn", "?odz & S?n"),
        ("京都", "??"),
        ("a\x00b", "a b"),
        # Marks without a letter. ISO 20022 allows no empty name, and the bank would refuse the whole file.
        ("\u0301\u0308", "?"),
    ],
)
def test_a_name_is_written_in_ascii_and_with_at_least_one_character(name: str, written: str) -> None:
    assert plain(name, 22) == written
