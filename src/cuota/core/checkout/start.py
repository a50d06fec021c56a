"""How a checkout was started, where it was not by `POST /order`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Integration(StrEnum):
    """Who started it."""

    API = "api"  # the browser's script, for a merchant that captures by the API
    VIRTUAL_CARD = "virtual_card"  # the script's button, for a merchant that charges a card
    GATEWAY = "gateway"  # POST /orders/authorize
    SMI = "smi"  # POST /checkouts


class Display(StrEnum):
    """Where the checkout's pages are shown."""

    POPUP = "popup"
    IFRAME = "iframe"
    REDIRECT = "redirect"


class Flow(StrEnum):
    """What the consumer is asked for: in the express flow, a shipping address too."""

    STANDARD = "standard"
    EXPRESS = "express"


@dataclass(frozen=True, slots=True)
class Start:
    """Written beside its order and never changed.

    `body_hash` is the SHA-256 of what the merchant signed: the same text is the same order. `origin` is the one web
    origin that the checkout's pages talk to. `additional` is what the merchant says about its customer, and by which
    carrier: `{"carrier": ..., "fields": {...}}`.
    """

    integration: Integration
    display: Display = Display.REDIRECT
    flow: Flow = Flow.STANDARD
    body_hash: bytes | None = None
    origin: str | None = None
    additional: dict[str, object] | None = None

    @property
    def in_page(self) -> bool:
        """Whether the merchant's page stays open and is told the result by script."""
        return self.integration in {Integration.API, Integration.VIRTUAL_CARD}
