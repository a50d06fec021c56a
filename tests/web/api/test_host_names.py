"""An address is refused when it is sent if its host name can never be resolved."""

from __future__ import annotations

import pytest

from cuota.web.addresses import BadAddress, read_address

LABEL = "a" * 63
LONGEST = f"{LABEL}.{LABEL}.{LABEL}.{'b' * 61}"


@pytest.mark.parametrize("host", [LABEL, f"{LABEL}.example", LONGEST, f"{LONGEST}."])
def test_a_host_of_253_characters_with_parts_of_63_is_accepted(host: str) -> None:
    assert read_address(f"https://{host}/x", https_only=True) == f"https://{host}/x"


@pytest.mark.parametrize(
    "host", ["a" * 64, f"shop.{'a' * 64}.example", f"{LONGEST}b", "a." * 200 + "example"]
)
def test_a_longer_name_or_part_is_refused(host: str) -> None:
    with pytest.raises(BadAddress, match="host name of at most 253 characters"):
        read_address(f"https://{host}/x", https_only=True)
