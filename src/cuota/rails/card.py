"""The card rail: charges cards and refunds money to them. The sandbox's rail simulates a card network."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from cuota.core.checkout.card import CardEntry
from cuota.core.money import CURRENCY
from cuota.core.sandbox import TEST_CARDS
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

__all__ = ["Card", "CardAnswer", "CardRail", "RailUnavailable", "SandboxCardRail"]


@dataclass(frozen=True, slots=True)
class Card:
    """The data of a card that we may store: the rail's token, brand and last four digits.

    `fingerprint` is the same for the same card, whoever enters it, and does not reveal the number. It is empty if the rail has
    no fingerprints; then uses of the card are not counted.
    """

    token: str
    brand: str
    last4: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """The rail's answer. `reason` is the code of a decline: card_declined, insufficient_funds, card_lost, ...

    The codes in `core/plan/collection.HARD_DECLINES` mean that this card will never pay.
    """

    approved: bool
    reason: str | None = None


class CardRail(Protocol):
    """The interface of the class in CUOTA_CARD_RAIL. Amounts are cents. Every call may raise RailUnavailable.

    `key` is an idempotency key: a repeated call with the same key returns the same answer and acts only once. The constructor
    takes what `rails/load.py` gives to every rail: `(settings, books, vault, now)`.
    """

    async def tokenize(self, card: CardEntry) -> Card:
        """Store the card in the rail's own vault, and return its token."""
        ...

    async def charge(self, key: UUID, token: str, amount: int, currency: str) -> CardAnswer:
        """Charge the card."""
        ...

    async def find_charge(self, key: UUID) -> CardAnswer | None:
        """Return the result of an earlier charge, or None if the rail never received it."""
        ...

    async def refund(self, key: UUID, charge: UUID, amount: int) -> CardAnswer:
        """Refund part or all of a charge to the card."""
        ...


_BEHAVIOURS = {card.number.replace(" ", ""): card.behaviour for card in TEST_CARDS}
_REASONS = json.dumps(
    {
        "declined": "card_declined",
        "no_funds": "insufficient_funds",
        "pays_once": "card_declined",
        "lost_later": "card_lost",
    }
)

_CARD = "INSERT INTO card_simulator.cards (token, brand, last4, behaviour) VALUES ($1, $2, $3, $4)"
_CHARGE = """
INSERT INTO card_simulator.charges (key, token, amount, approved, reason)
SELECT $1, token, $3, answer.approved, CASE WHEN answer.approved THEN NULL ELSE $4::jsonb ->> behaviour END
FROM card_simulator.cards, LATERAL (SELECT CASE
    WHEN behaviour IN ('pays', 'disputed') THEN true
    WHEN behaviour IN ('pays_once', 'lost_later') THEN NOT EXISTS (SELECT FROM card_simulator.charges c WHERE c.token = cards.token AND c.approved)
    ELSE false END AS approved) answer
WHERE token = $2 ON CONFLICT (key) DO NOTHING
"""
_FIND = "SELECT approved, reason FROM card_simulator.charges WHERE key = $1"
_REFUND = """
WITH taken AS (
    INSERT INTO card_simulator.refunds (key, charge, amount)
    SELECT $1, key, $3 FROM card_simulator.charges WHERE key = $2 AND approved AND amount - refunded >= $3
    ON CONFLICT (key) DO NOTHING RETURNING charge, amount
), counted AS (
    UPDATE card_simulator.charges c SET refunded = refunded + t.amount FROM taken t WHERE c.key = t.charge RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) OR EXISTS (SELECT FROM card_simulator.refunds WHERE key = $1) AS approved
"""


class SandboxCardRail:
    """A simulated card network. It has its own tables and transactions, like a real network outside.

    The table of test cards says how each number behaves. Any other valid number pays.
    """

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        del settings, now
        self._books = books
        self._vault = vault

    async def tokenize(self, card: CardEntry) -> Card:
        """Store how the card behaves, but never its number."""
        token = f"card_{secrets.token_urlsafe(18)}"
        behaviour = _BEHAVIOURS.get(card.number, "pays")
        await self._books.execute(_CARD, token, card.brand, card.last4, behaviour)
        return Card(token, card.brand, card.last4, self._fingerprint(card.number))

    def _fingerprint(self, number: str) -> str:
        """Return the card's fingerprint. Test cards have none, because everybody uses them."""
        return "" if number in _BEHAVIOURS else self._vault.hash("card-fingerprint", number).hex()

    async def charge(self, key: UUID, token: str, amount: int, currency: str) -> CardAnswer:
        """Charge the card according to its behavior, once for each key."""
        assert currency == CURRENCY
        await self._books.execute(_CHARGE, key, token, amount, _REASONS)
        answer = await self.find_charge(key)
        return answer or CardAnswer(False, "card_unknown")

    async def find_charge(self, key: UUID) -> CardAnswer | None:
        """Look up the charge in the simulator's table."""
        row = await self._books.fetchrow(_FIND, key)
        return None if row is None else CardAnswer(row["approved"], row["reason"])

    async def refund(self, key: UUID, charge: UUID, amount: int) -> CardAnswer:
        """Refund at most what was charged, once for each key."""
        row = await self._books.fetchrow(_REFUND, key, charge, amount)
        return CardAnswer(True) if row and row["approved"] else CardAnswer(False, "exceeds_charge")
