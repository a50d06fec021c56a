"""Checks an address that is to get webhooks."""

from __future__ import annotations

from urllib.parse import urlsplit

from cuota.config import Settings
from cuota.core.webhook.destination import is_inside
from cuota.web.addresses import BadAddress, read_address


def read_webhook_address(text: str, settings: Settings) -> str:
    """Return the address of a webhook endpoint as it is stored. Raises BadAddress.

    Production takes https only. An address that is written as one inside a private network is refused here; a host name is
    checked each time that it is resolved.
    """
    checked = read_address(text, https_only=not settings.sandbox)
    if is_inside(urlsplit(checked).hostname or "", loopback=settings.loopback_webhooks):
        raise BadAddress("must be a public address, not one inside a private network")
    return checked
