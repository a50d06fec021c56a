"""The issuing rail: a virtual card for one order, locked to its merchant and its amount. The sandbox's is a simulator."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuota.core.checkout.card import passes_luhn
from cuota.rails.stores import RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

__all__ = ["IssuingRail", "RailUnavailable", "SandboxIssuingRail", "VirtualCard", "details_text"]

# Issued numbers begin like this; none of the sandbox's test table does.
PREFIX = "400009"
BRAND = "visa"
YEARS = 3
_TRIES = 5


@dataclass(frozen=True, slots=True)
class VirtualCard:
    """A card in plain: it passes through to the one page that shows it. `repr` shows none of it."""

    number: str = field(repr=False)
    cvc: str = field(repr=False)
    month: int = field(repr=False)
    year: int = field(repr=False)
    brand: str


class IssuingRail(Protocol):
    """What CUOTA_ISSUING_RAIL names. Amounts in cents. Every call may raise RailUnavailable.

    A class is made with a `RailDatabase`, a `RailVault` and a clock, which it need not use. `key` is an idempotency key: each
    call may be repeated, and acts once. The number can be seen until `hide`, then never again by anybody: the service
    decides who may see it (`flows/checkout/issue_card.py`) and keeps no copy.
    """

    async def issue(self, key: UUID, merchant_id: UUID, order_id: UUID, amount: int, currency: str) -> None:
        """Make a card that only this merchant can charge, one authorization and no more than this amount."""
        ...

    async def reveal(self, key: UUID) -> VirtualCard | None:
        """The card in plain; None once hidden, or never issued."""
        ...

    async def hide(self, key: UUID) -> None:
        """Show it to nobody any more. The card goes on working."""
        ...

    async def limit(self, key: UUID, amount: int) -> None:
        """It pays for no more than this altogether, what is captured included. Limits only fall."""
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
    """What must be right together for a card to be taken."""
    return f"{number}:{cvc}:{month:02d}:{year}"


def _new_number() -> str:
    body = f"{PREFIX}{secrets.randbelow(10**9):09d}"
    return next(body + digit for digit in "0123456789" if passes_luhn(body + digit))


class SandboxIssuingRail:
    """A simulated issuer. What the card is used for comes in by `rails/card_network.py`, from the same books."""

    def __init__(self, books: RailDatabase, safe: RailVault, now: Callable[[], datetime]) -> None:
        self._books = books
        self._safe = safe
        self._now = now

    async def issue(self, key: UUID, merchant_id: UUID, order_id: UUID, amount: int, currency: str) -> None:
        """Once a key; a number that is taken already is thrown away for another."""
        now = self._now()
        month, year = now.month, now.year + YEARS
        for _ in range(_TRIES):
            if await self._books.fetchrow(_THERE, key) is not None:
                return
            number, cvc = _new_number(), f"{secrets.randbelow(1000):03d}"
            sealed = self._safe.encrypt(json.dumps([number, cvc]), _bound(key))
            await self._books.execute(
                _ISSUE, key, merchant_id, order_id, sealed, self._safe.hash("issued-number", number),
                self._safe.hash("issued-card", details_text(number, cvc, month, year)),
                BRAND, month, year, currency, amount,
            )  # fmt: skip
        if await self._books.fetchrow(_THERE, key) is None:
            raise RailUnavailable("no free number was found")

    async def reveal(self, key: UUID) -> VirtualCard | None:
        """Unseal it, while it is there."""
        row = await self._books.fetchrow(_REVEAL, key)
        if row is None or row["sealed"] is None:
            return None
        number, cvc = json.loads(self._safe.decrypt(row["sealed"], _bound(key)))
        return VirtualCard(number, cvc, row["expires_month"], row["expires_year"], row["brand"])

    async def hide(self, key: UUID) -> None:
        """What is sealed goes; hashes stay, so that the card can be recognised."""
        await self._books.execute(_HIDE, key)

    async def limit(self, key: UUID, amount: int) -> None:
        """Lower it."""
        await self._books.execute(_LIMIT, key, amount)


def _bound(key: UUID) -> str:
    return f"virtual-card:{key}"
