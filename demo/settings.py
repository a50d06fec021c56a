"""What the shop must be told: one frozen object, read once from SHOP_* in the environment."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit


class SettingsError(Exception):
    """A setting is missing or unusable; the text names it and says what it should be."""


@dataclass(frozen=True)
class WebhookKeys:
    """What webhooks are verified with: the webhook secret and the signing secret, as they were issued."""

    webhook: str = field(repr=False)
    signing: str = field(repr=False)


@dataclass(frozen=True)
class ShopSettings:
    """The shop's settings. Addresses are kept without a trailing slash."""

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
        """Read the environment, or raise SettingsError."""
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
        """Scheme, host and port of the provider, as a content security policy names them."""
        parts = urlsplit(self.api_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def webhook_url(self) -> str | None:
        """Where the provider tells what happens; None where the shop could not verify it."""
        return None if self.webhook_keys is None else f"{self.public_url}/webhooks"

    @property
    def signs(self) -> bool:
        """Whether the shop can sign orders for a window on its own page; else only the redirect is offered."""
        return self.merchant_id is not None and self.webhook_keys is not None

    @property
    def https(self) -> bool:
        """Whether the shop's own cookies may be limited to https."""
        return self.public_url.startswith("https://")


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise SettingsError(f"{name} is missing: set it to the value that the payment provider issued.")
    return value


def _webhook_keys(environ: Mapping[str, str]) -> WebhookKeys | None:
    """Both or none: without them the shop is told nothing, and asks."""
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
        raise SettingsError("SHOP_WEBHOOK_SECRET should be the merchant's webhook secret, whsec_ and base64.")
    return WebhookKeys(webhook, _text(environ, "SHOP_SIGNING_SECRET"))


def _address(environ: Mapping[str, str], name: str, default: str | None) -> str:
    value = environ.get(name, "").strip() or default
    if value is None:
        raise SettingsError(f"{name} is missing: set it to an address like http://127.0.0.1:8000.")
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise SettingsError(f"{name} is {value!r}: it should be an http or https address.")
    return value.rstrip("/")
