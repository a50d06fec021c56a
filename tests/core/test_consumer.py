"""An address is recognized in every way in which people type it."""

from __future__ import annotations

from cuota.core.consumer import Address, address_key


def test_an_address_is_the_same_however_it_is_typed() -> None:
    typed = [
        ("1480 Mission Street", "Apt. 5"), ("1480 MISSION ST.", "apartment 5"), (" 1480  mission st", "apt 5"),
    ]  # fmt: skip
    keys = {address_key(Address(line1, line2, "San Francisco", "CA", "94103")) for line1, line2 in typed}
    assert len(keys) == 1
    assert address_key(Address("1480 Mission Street", "Apt 6", "San Francisco", "CA", "94103")) not in keys
    assert address_key(Address("1480 Mission Street", "Apt 5", "San Francisco", "CA", "94104")) not in keys
