"""The shop's settings: one frozen object, read once from the environment variables SHOP_*."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit


class SettingsError(Exception):
    """A setting is missing or invalid. The text has the setting's name and its valid values."""


@dataclass(frozen=True)
class WebhookKeys:
    """The secrets that verify webhooks: the webhook secret and the signing secret, as the provider issued them."""

    webhook: str = field(repr=False)
    signing: str = field(repr=False)


@dataclass(frozen=True)
class ShopSettings:
    """The shop's settings. Addresses have no trailing slash."""

    api_url: str
    auth_url: str
    client_id: str
    client_secret: str = field(repr=False)
    audience: str
    public_url: str
    data: Path
    webhook_keys: WebhookKeys | None
    merchant_id: str | None
    staff_password: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables. Raises SettingsError."""
        api_url = _address(environ, "SHOP_API_URL", None)
        return cls(
            api_url=api_url,
            auth_url=_address(environ, "SHOP_AUTH_URL", api_url),
            client_id=_text(environ, "SHOP_CLIENT_ID"),
            client_secret=_text(environ, "SHOP_CLIENT_SECRET"),
            audience=_text(environ, "SHOP_AUDIENCE"),
            public_url=_address(environ, "SHOP_PUBLIC_URL", "http://127.0.0.1:8001"),
            data=Path(environ.get("SHOP_DATA") or ".data/shop"),
            webhook_keys=_webhook_keys(environ),
            merchant_id=environ.get("SHOP_MERCHANT_ID", "").strip() or None,
            staff_password=environ.get("SHOP_STAFF_PASSWORD", "").strip() or None,
        )

    @property
    def api_origin(self) -> str:
        """The origin of the provider (scheme, host and port), for the content security policy."""
        parts = urlsplit(self.api_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def webhook_url(self) -> str | None:
        """The address for the provider's webhooks; None if the shop has no secrets to verify them."""
        return None if self.webhook_keys is None else f"{self.public_url}/webhooks"

    @property
    def signs(self) -> bool:
        """Return whether the shop can sign orders for a checkout on its own page. Otherwise it offers only the redirect."""
        return self.merchant_id is not None and self.webhook_keys is not None

    @property
    def https(self) -> bool:
        """Return whether the shop uses https, so that its cookies can be limited to https."""
        return self.public_url.startswith("https://")


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise SettingsError(f"{name} is missing: set it to the value that the payment provider issued.")
    return value


def _webhook_keys(environ: Mapping[str, str]) -> WebhookKeys | None:
    """Read both secrets, or return None if neither is set.

    Without them the shop gets no webhooks, and reads orders from the provider.
    """
    webhook, signing = (
        environ.get(name, "").strip() for name in ("SHOP_WEBHOOK_SECRET", "SHOP_SIGNING_SECRET")
    )
    if not webhook and not signing:
        return None
    try:
        key = base64.b64decode(webhook.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise SettingsError(
            "SHOP_WEBHOOK_SECRET should be the merchant's webhook secret: whsec_ followed by base64."
        )
    return WebhookKeys(webhook, _text(environ, "SHOP_SIGNING_SECRET"))


def _address(environ: Mapping[str, str], name: str, default: str | None) -> str:
    value = environ.get(name, "").strip() or default
    if value is None:
        raise SettingsError(f"{name} is missing: set it to an address like http://127.0.0.1:8000.")
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise SettingsError(f"{name} is {value!r}: it should be an http or https address.")
    return value.rstrip("/")
