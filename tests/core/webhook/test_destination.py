"""Each address to which webhooks may not be sent."""

from __future__ import annotations

import pytest

from cuota.core.webhook.destination import is_allowed

OUTSIDE = (
    "1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15",
    "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888", "2001:200::1",
)  # fmt: skip
INSIDE = {
    "this network": ("0.0.0.0", "0.1.2.3"),
    "private": (
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "192.168.255.255",
    ),
    "carrier-grade NAT": ("100.64.0.1", "100.127.255.255", "100.100.100.200"),
    "link-local": ("169.254.0.1", "fe80::1", "febf::1"),
    "metadata": ("169.254.169.254", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"),
    "protocol assignments": ("192.0.0.1", "192.88.99.1"),
    "documentation": ("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"),
    "benchmark": ("198.18.0.1", "198.19.255.255", "2001:2::1"),
    "multicast": ("224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"),
    "reserved": ("240.0.0.1", "255.255.255.254", "4000::1", "100::1", "5f00::1"),
    "broadcast": ("255.255.255.255",),
    "unspecified": ("::",),
    "mapped": ("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:7f00:1", "::ffff:0:127.0.0.1"),
    "compatible": ("::127.0.0.1", "::8.8.8.8", "::a00:1"),
    "NAT64": ("64:ff9b::127.0.0.1", "64:ff9b::808:808", "64:ff9b:1::a00:1"),
    "6to4": ("2002:7f00:1::", "2002:808:808::1"),
    "Teredo": ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1"),
    "ORCHID": ("2001:10::1", "2001:20::1"),
    "unique local": ("fc00::1", "fd12:3456::1"),
    "site-local": ("fec0::1", "feff::1"),
    "with a zone": ("fe80::1%eth0", "2606:4700:4700::1111%eth0", "::1%lo", "1.1.1.1%eth0"),
    "no address": ("", "example.com", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "1.1.1.1 ", "[::1]"),
}
LOOPBACK = ("127.0.0.1", "127.0.0.53", "127.255.255.255", "::1")


@pytest.mark.parametrize("address", OUTSIDE)
def test_addresses_on_the_public_internet_are_allowed(address: str) -> None:
    assert is_allowed(address, loopback=False)
    assert is_allowed(address, loopback=True)


@pytest.mark.parametrize(
    "address", [address for kind in INSIDE.values() for address in kind], ids=lambda address: address or "-"
)
def test_internal_addresses_are_forbidden_in_the_sandbox_too(address: str) -> None:
    assert not is_allowed(address, loopback=False)
    assert not is_allowed(address, loopback=True)


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_is_allowed_in_the_sandbox_only(address: str) -> None:
    assert is_allowed(address, loopback=True)
    assert not is_allowed(address, loopback=False)
