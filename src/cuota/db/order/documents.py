"""The JSON document of an order: what it was created with and never changes, as exact text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> bytes:
    """JSON with decimals printed as exact numbers, never by way of a float."""
    return _encoder.encode(value)


@dataclass(frozen=True, slots=True)
class Document:
    """What the checkout needs of an order's document; `value` is all of it."""

    value: dict[str, Any]

    @property
    def confirm_url(self) -> str | None:
        """Where the consumer goes after success; None where the merchant's page stayed open."""
        url: str | None = self.value["merchant"]["redirectConfirmUrl"]
        return url

    @property
    def cancel_url(self) -> str | None:
        """Where the consumer goes otherwise; None as above."""
        url: str | None = self.value["merchant"]["redirectCancelUrl"]
        return url

    @property
    def consumer(self) -> dict[str, Any]:
        """What the merchant said about its customer; may be empty."""
        return self.value["consumer"] or {}

    @property
    def shipping(self) -> dict[str, Any]:
        """The shipping address; may be empty."""
        return self.value["shipping"] or {}

    @property
    def address(self) -> dict[str, Any]:
        """The billing address, else the shipping address; may be empty."""
        return self.value["billing"] or self.value["shipping"] or {}


def decode(text: str) -> Document:
    """Read a stored document; decimals stay decimals."""
    return Document(json.loads(text, parse_float=Decimal))
