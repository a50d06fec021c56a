"""Texts that are stored in large numbers are compressed with usual words, and every stored text stays readable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.wire.packed_text import pack, unpack
from support.properties.steady import STEADY

MESSAGE = json.dumps(
    {
        "subject": "We received $25.00",
        "text": "We charged $25.00 to Visa ending 4242: payment 2 of 4 for your order A-17 at Alder & Oak. Nothing is left to pay.",
        "phone": "+12125550142",
        "email": None,
    }
)
# MESSAGE, as the first release with packed texts stored it.
STORED = bytes.fromhex(
    "ff01c31d90605f503d341d750dcd4121ea9803e2a929f82766230a58b4dc851608468646a6a6a606862646e8c1510b00"
)


def test_a_text_that_an_earlier_release_stored_is_readable() -> None:
    # If this test fails, the usual words were changed: every stored message is unreadable then.
    assert unpack(STORED) == MESSAGE


def test_a_text_that_was_stored_without_compression_is_readable() -> None:
    assert unpack(MESSAGE.encode()) == MESSAGE


def test_a_usual_message_takes_less_than_a_third() -> None:
    assert len(pack(MESSAGE)) * 3 < len(MESSAGE)


@STEADY
@given(st.text())
def test_every_text_comes_back_and_never_takes_more_bytes_than_in_utf_8(text: str) -> None:
    assert unpack(pack(text)) == text
    assert len(pack(text)) <= len(text.encode())


@pytest.mark.parametrize("text", ["", "\xff\x01", "\x00", "é" * 40_000, MESSAGE * 500])
def test_an_unusual_text_comes_back(text: str) -> None:
    assert unpack(pack(text)) == text
