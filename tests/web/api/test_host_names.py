"""An address that cannot be used is refused when it is sent: its host name can never be resolved, or it is not encoded."""

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


@pytest.mark.parametrize(
    "rest", ["/caf\N{LATIN SMALL LETTER E WITH ACUTE}", "/a b", "/?q=%zz", "?q=a\\b", '#"', "/a\nb"]
)
def test_a_character_that_must_be_percent_encoded_is_the_reason_of_the_refusal(rest: str) -> None:
    with pytest.raises(BadAddress, match="percent-encoded"):
        read_address(f"https://shop.example:8443{rest}", https_only=True)


@pytest.mark.parametrize(
    "address",
    ["shop.example/a b", "https://user@shop.example/", "https://shop.example\\@other.example/", "/a b"],
)
def test_an_address_without_a_usable_host_is_refused_for_that_reason(address: str) -> None:
    with pytest.raises(BadAddress, match="absolute http or https address"):
        read_address(address, https_only=True)
