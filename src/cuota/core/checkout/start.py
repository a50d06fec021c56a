"""How a checkout was started, if it was not started by `POST /order`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Integration(StrEnum):
    """The integration that started the checkout."""

    API = "api"  # the script in the browser, for a merchant that captures through the API
    VIRTUAL_CARD = "virtual_card"  # the script's button, for a merchant that charges a card
    GATEWAY = "gateway"  # POST /orders/authorize
    SMI = "smi"  # POST /checkouts


class Display(StrEnum):
    """Where the checkout's pages are shown."""

    POPUP = "popup"
    IFRAME = "iframe"
    REDIRECT = "redirect"


class Flow(StrEnum):
    """The data that the consumer must enter. The express flow also asks for a shipping address."""

    STANDARD = "standard"
    EXPRESS = "express"


@dataclass(frozen=True, slots=True)
class Start:
    """How the checkout was started. It is stored with the order and never changes.

    `body_hash` is the SHA-256 of the text that the merchant signed; the same text always means the same order. `origin` is the web
    origin to which the checkout's pages send messages. `additional` is the merchant's data about its customer, with the interface
    that carried it: `{"carrier": ..., "fields": {...}}`.
    """

    integration: Integration
    display: Display = Display.REDIRECT
    flow: Flow = Flow.STANDARD
    body_hash: bytes | None = None
    origin: str | None = None
    additional: dict[str, object] | None = None

    @property
    def in_page(self) -> bool:
        """True if the merchant's page stays open and gets the result by script."""
        return self.integration in {Integration.API, Integration.VIRTUAL_CARD}
