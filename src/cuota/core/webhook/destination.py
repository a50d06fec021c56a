"""Decides which addresses webhooks may go to: never private ones. It checks the resolved address that is then used."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# 168.63.129.16 looks public, but inside every Azure machine it is an address of the platform.
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
# Only 2000::/3 is assigned to the public internet. These parts of it are translations, tunnels, documentation, or not routed.
_GLOBAL_6 = IPv6Network("2000::/3")
_FORBIDDEN_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_LOOPBACK_4 = IPv4Network("127.0.0.0/8")
_LOOPBACK_6 = IPv6Address("::1")
# The private networks of a company, without link-local addresses, at which clouds offer their machines' secrets.
_PRIVATE_4 = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")))
_PRIVATE_6 = IPv6Network("fc00::/7")


def is_allowed(address: str, *, loopback: bool, private: bool = False) -> bool:
    """Return whether webhooks may connect to a resolved address. `loopback` is a setting of the sandbox.

    `private` also allows addresses of private networks: never for webhooks, only for a company's own sign-in provider.

    Addresses that contain another address (mapped, compatible, NAT64, 6to4, Teredo) are always refused, because the network
    would route them to an address that was not checked.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        if parsed in _LOOPBACK_4:
            return loopback
        mine = private and any(parsed in network for network in _PRIVATE_4)
        return mine or not any(parsed in network for network in _FORBIDDEN_4)
    # An address with a zone is local by definition.
    if parsed.scope_id is not None:
        return False
    if parsed == _LOOPBACK_6:
        return loopback
    mine = private and parsed in _PRIVATE_6
    return mine or (parsed in _GLOBAL_6 and not any(parsed in network for network in _FORBIDDEN_6))


def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address."""
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_inside(host: str, *, loopback: bool) -> bool:
    """Return whether a host is written as a forbidden address. A host name can be checked only after it is resolved."""
    try:
        ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return not is_allowed(host.strip("[]"), loopback=loopback)
