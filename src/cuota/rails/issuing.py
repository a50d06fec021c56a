"""The issuing rail: issues a virtual card for one order, valid only at its merchant and up to its amount.

The sandbox's rail simulates an issuer.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from cuota.core.checkout.card import passes_luhn
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

__all__ = ["IssuingRail", "RailUnavailable", "SandboxIssuingRail", "VirtualCard", "details_text"]

# Issued card numbers begin with this prefix. No number in the sandbox's table of test cards does.
PREFIX = "400009"
BRAND = "visa"
YEARS = 3
_TRIES = 5


@dataclass(frozen=True, slots=True)
class VirtualCard:
    """A card's data in plain text, on its way to the one page that shows it. `repr` shows none of it."""

    number: str = field(repr=False)
    cvc: str = field(repr=False)
    month: int = field(repr=False)
    year: int = field(repr=False)
    brand: str


class IssuingRail(Protocol):
    """The interface of the class in CUOTA_ISSUING_RAIL. Amounts are cents. Every call may raise RailUnavailable.

    The constructor takes what `rails/load.py` gives to every rail: `(settings, books, vault, now)`. `key` is an idempotency key: a
    repeated call acts only once. The number can be read until `hide` is called, and never after that. The service decides who
    may see the number (`flows/checkout/issue_card.py`), and stores no copy.
    """

    async def issue(self, key: UUID, merchant_id: UUID, order_id: UUID, amount: int, currency: str) -> None:
        """Issue a card that only this merchant can charge, with one authorization of at most this amount."""
        ...

    async def reveal(self, key: UUID) -> VirtualCard | None:
        """Return the card in plain text, or None if it is hidden or was never issued."""
        ...

    async def hide(self, key: UUID) -> None:
        """Never return the card's data again. The card stays valid."""
        ...

    async def limit(self, key: UUID, amount: int) -> None:
        """Lower the total that the card can pay, including what is already captured. A limit never rises."""
        ...


_ISSUE = """
INSERT INTO issuing_simulator.cards (key, merchant_id, order_id, sealed, number_hash, details_hash, brand,
    expires_month, expires_year, currency, amount, spend_limit)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11 ON CONFLICT DO NOTHING
"""
_THERE = "SELECT 1 FROM issuing_simulator.cards WHERE key = $1"
_REVEAL = "SELECT sealed, brand, expires_month, expires_year FROM issuing_simulator.cards WHERE key = $1"
_HIDE = "UPDATE issuing_simulator.cards SET sealed = NULL WHERE key = $1"
_LIMIT = "UPDATE issuing_simulator.cards SET spend_limit = least(spend_limit, $2) WHERE key = $1"


def details_text(number: str, cvc: str, month: int, year: int) -> str:
    """Return the card's data that must match together when the card is used."""
    return f"{number}:{cvc}:{month:02d}:{year}"


def _new_number() -> str:
    body = f"{PREFIX}{secrets.randbelow(10**9):09d}"
    return next(body + digit for digit in "0123456789" if passes_luhn(body + digit))


class SandboxIssuingRail:
    """A simulated issuer. Uses of the card arrive through `rails/card_network.py`, which shares its tables."""

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        del settings
        self._books = books
        self._vault = vault
        self._now = now

    async def issue(self, key: UUID, merchant_id: UUID, order_id: UUID, amount: int, currency: str) -> None:
        """Issue the card, once for each key. If a random number is taken, try another."""
        now = self._now()
        month, year = now.month, now.year + YEARS
        for _ in range(_TRIES):
            if await self._books.fetchrow(_THERE, key) is not None:
                return
            number, cvc = _new_number(), f"{secrets.randbelow(1000):03d}"
            sealed = self._vault.encrypt(json.dumps([number, cvc]), _bound(key))
            await self._books.execute(
                _ISSUE, key, merchant_id, order_id, sealed, self._vault.hash("issued-number", number),
                self._vault.hash("issued-card", details_text(number, cvc, month, year)),
                BRAND, month, year, currency, amount,
            )  # fmt: skip
        if await self._books.fetchrow(_THERE, key) is None:
            raise RailUnavailable("no free number was found")

    async def reveal(self, key: UUID) -> VirtualCard | None:
        """Decrypt the card's data, if it is still stored."""
        row = await self._books.fetchrow(_REVEAL, key)
        if row is None or row["sealed"] is None:
            return None
        number, cvc = json.loads(self._vault.decrypt(row["sealed"], _bound(key)))
        return VirtualCard(number, cvc, row["expires_month"], row["expires_year"], row["brand"])

    async def hide(self, key: UUID) -> None:
        """Delete the encrypted data. The hashes stay, so that the card can be recognized."""
        await self._books.execute(_HIDE, key)

    async def limit(self, key: UUID, amount: int) -> None:
        """Lower the limit."""
        await self._books.execute(_LIMIT, key, amount)


def _bound(key: UUID) -> str:
    return f"virtual-card:{key}"
