"""The address that a request comes from, for limits: of IPv6 the 64 bits that one customer is given."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.requests import Request

from cuota.web.service import service_of

ClientAddress = IPv4Address | IPv6Address


def client_address(request: Request) -> str | None:
    """The client's own address; None where only that of an unnamed proxy, or of this machine, is known.

    `X-Forwarded-For` is believed from the proxies that CUOTA_TRUSTED_PROXIES names, and from nobody else: its last
    address that is none of theirs. A private address that forwards nothing may stand for all consumers at once: whoever
    limited it would lock all of them out.
    """
    peer = _read(request.client.host) if request.client else None
    if peer is None:
        return None
    trusted = service_of(request).settings.trusted_proxies
    if not any(peer in network for network in trusted):
        return None if peer.is_private or peer.is_loopback else _text(peer)
    named = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    for text in reversed(named):
        address = _read(text.strip())
        if address is None:
            return None
        if not any(address in network for network in trusted):
            return _text(address)
    return None


def _read(text: str) -> ClientAddress | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _text(address: ClientAddress) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Address(int(address) >> 64 << 64))
