"""The JSON document with which an order was created, stored as exact text. It never changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> bytes:
    """Write JSON. Decimals are written exactly and never converted to floats."""
    return _encoder.encode(value)


@dataclass(frozen=True, slots=True)
class Document:
    """The parts of an order's document that the checkout needs. `value` is the whole document."""

    value: dict[str, Any]

    @property
    def confirm_url(self) -> str | None:
        """The address for the consumer after success, or None if the merchant's page stayed open."""
        url: str | None = self.value["merchant"]["redirectConfirmUrl"]
        return url

    @property
    def cancel_url(self) -> str | None:
        """The address for the consumer after any other end, or None if the merchant's page stayed open."""
        url: str | None = self.value["merchant"]["redirectCancelUrl"]
        return url

    @property
    def consumer(self) -> dict[str, Any]:
        """The merchant's data about its customer; may be empty."""
        return self.value["consumer"] or {}

    @property
    def shipping(self) -> dict[str, Any]:
        """The shipping address; may be empty."""
        return self.value["shipping"] or {}

    @property
    def address(self) -> dict[str, Any]:
        """The billing address, or else the shipping address; may be empty."""
        return self.value["billing"] or self.value["shipping"] or {}


def decode(text: str) -> Document:
    """Read a stored document. Decimal numbers become Decimals."""
    return Document(json.loads(text, parse_float=Decimal))
