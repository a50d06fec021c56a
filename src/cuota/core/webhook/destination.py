"""Where webhooks may go: never to an address inside. Judged on the resolved address, which is then connected to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# 168.63.129.16 looks public and is the platform's own address inside every Azure machine.
_FORBIDDEN_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
            "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
# Only 2000::/3 is handed out at all; of it these are translations, tunnels, documentation or not routed.
_GLOBAL_6 = IPv6Network("2000::/3")
_FORBIDDEN_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_LOOPBACK_4 = IPv4Network("127.0.0.0/8")
_LOOPBACK_6 = IPv6Address("::1")


def is_allowed(address: str, *, loopback: bool) -> bool:
    """Whether a resolved address may be connected to. `loopback` is a setting of the sandbox.

    Addresses that carry another one inside (mapped, compatible, NAT64, 6to4, Teredo) are refused as such: the network
    would take them to places that were not looked at.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        if parsed in _LOOPBACK_4:
            return loopback
        return not any(parsed in network for network in _FORBIDDEN_4)
    # One with a zone is local by definition.
    if parsed.scope_id is not None:
        return False
    if parsed == _LOOPBACK_6:
        return loopback
    return parsed in _GLOBAL_6 and not any(parsed in network for network in _FORBIDDEN_6)


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_inside(host: str, *, loopback: bool) -> bool:
    """Whether a host that is written as an address may not be gone to; a name is only known once it is resolved."""
    try:
        ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return not is_allowed(host.strip("[]"), loopback=loopback)
