"""Finds the network address of a client, for rate limits and logs.

Of an IPv6 address only the first 64 bits are used: a provider gives one customer a whole block of that size.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.requests import Request

from cuota.config import Settings
from cuota.config.reading import Network
from cuota.web.service import service_of

ClientAddress = IPv4Address | IPv6Address
log = logging.getLogger("cuota.request")


def client_address(request: Request) -> str | None:
    """Return the client's own address, or None if it cannot be determined.

    `X-Forwarded-For` counts only if the request comes from a proxy that CUOTA_TRUSTED_PROXIES names. The client is then
    the last address in that header that is not a trusted proxy.

    A private or loopback address of any other sender gives None. It is probably a proxy that the settings do not name,
    and all consumers would share it: a rate limit on that address would lock all of them out.
    """
    sender = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
    settings = service_of(request).settings
    _check_proxy(settings, sender, forwarded)
    return _client(settings.trusted_proxies, sender, forwarded)


def _client(trusted: tuple[Network, ...], sender: str, forwarded: str) -> str | None:
    peer = _read(sender)
    if peer is None:
        return None
    if not any(peer in network for network in trusted):
        return None if _is_inside(peer) else _text(peer)
    for text in reversed(forwarded.split(",")):
        address = _read(text.strip())
        if address is None:
            return None
        if not any(address in network for network in trusted):
            return _text(address)
    return None


def seen_address(request: Request) -> str:
    """Return the address for a log: the client's own, or else the sender's. Empty if neither is known."""
    return client_address(request) or (request.client.host if request.client else "")


# A merchant calls from few addresses, and the request log asks for each call.
_remembered = lru_cache(maxsize=1024)(_client)


def seen_address_of(settings: Settings, sender: str, forwarded: str) -> str:
    """Return the same for a sender and the value of its X-Forwarded-For header."""
    _check_proxy(settings, sender, forwarded)
    return (
        _remembered(settings.trusted_proxies, sender, forwarded if settings.trusted_proxies else "") or sender
    )


def _check_proxy(settings: Settings, sender: str, forwarded: str) -> None:
    """Warn, in production, about a sender that is probably a proxy that CUOTA_TRUSTED_PROXIES does not name."""
    if forwarded and not settings.sandbox and _is_unnamed(settings.trusted_proxies, sender):
        _warn_once(settings.trusted_proxies, sender)


@lru_cache(maxsize=1024)
def _is_unnamed(trusted: tuple[Network, ...], sender: str) -> bool:
    peer = _read(sender)
    return peer is not None and _is_inside(peer) and not any(peer in network for network in trusted)


_warned: set[tuple[Network, ...]] = set()


def _warn_once(trusted: tuple[Network, ...], sender: str) -> None:
    """Warn once in the life of the process: its settings do not change."""
    if trusted not in _warned:
        _warned.add(trusted)
        log.warning(
            "no limit by IP address applies: a proxy is not in CUOTA_TRUSTED_PROXIES",
            extra={"facts": {"proxy": sender}},
        )


def _is_inside(address: ClientAddress) -> bool:
    return address.is_private or address.is_loopback


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
