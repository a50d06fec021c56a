"""Stores orders that are paid in a popup or modal on the shop's page. They are stored and signed before the click."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from .catalog import Cart

WAYS = {
    "standard": "Pay in four",
    "express": "Express: the checkout asks where to ship",
    "card": "Virtual card: the shop charges a card",
}
DISPLAYS = {"popup": "A popup window", "iframe": "A modal on the page"}
_SCHEMA = """
CREATE TABLE IF NOT EXISTS signed (
    number INTEGER PRIMARY KEY, fits TEXT NOT NULL UNIQUE, way TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS card_payments (
    number INTEGER PRIMARY KEY, authorization_id TEXT NOT NULL, last_four TEXT NOT NULL);
"""
# Selects the signed text of an order that can still be paid. A virtual-card order counts until the shop charged its card.
_OPEN = """SELECT s.number, s.body FROM signed s JOIN orders o ON o.number = s.number
    WHERE s.fits = ? AND (o.status IN ('New', 'Created') OR (o.status = 'Approved' AND s.way = 'card'
        AND NOT EXISTS (SELECT 1 FROM card_payments c WHERE c.number = s.number)))"""


@dataclass(frozen=True)
class Wish:
    """The visitor's choice: which kind of checkout (`way`), and how to show it (`display`)."""

    way: str = "standard"
    display: str = "popup"

    @classmethod
    def read(cls, fields: Mapping[str, str]) -> Wish:
        """Read the choice from a query or a form. An unknown value becomes the default."""
        way, display = fields.get("way", ""), fields.get("display", "")
        return cls(way if way in WAYS else "standard", display if display in DISPLAYS else "popup")

    def fits(self, session: str, cart: Cart) -> str:
        """Return a key for the visitor, the choice and the cart. Clicks with the same key are for the same order."""
        lines = [asdict(line) for line in cart.lines]
        return json.dumps([session, asdict(self), lines, cart.amount])


@dataclass(frozen=True)
class CardPayment:
    """The data that the shop stores about a virtual card. The card number is not stored."""

    authorization_id: str
    last_four: str


class SignedOrders:
    """The tables of signed texts and of charges on virtual cards, in the shop's SQLite file."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._db.executescript(_SCHEMA)

    def find(self, fits: str) -> tuple[int, str] | None:
        """Return the number and the signed text of the open order with this key, or None."""
        row = self._db.execute(_OPEN, (fits,)).fetchone()
        return None if row is None else (row["number"], row["body"])

    def keep(self, number: int, fits: str, way: str, body: str) -> None:
        """Store the signed text of an order. An older order no longer has the key."""
        self._db.execute("UPDATE signed SET fits = fits || number WHERE fits = ?", (fits,))
        self._db.execute("INSERT INTO signed VALUES (?, ?, ?, ?)", (number, fits, way, body))

    def over(self, number: int) -> None:
        """Take the key from an order that has ended, so that the next click makes a new order."""
        self._db.execute("UPDATE signed SET fits = number WHERE number = ?", (number,))

    def way(self, number: int) -> str | None:
        """Return the kind of checkout that an order was signed for; None if it is paid by redirect."""
        row = self._db.execute("SELECT way FROM signed WHERE number = ?", (number,)).fetchone()
        return None if row is None else str(row["way"])

    def wish(self, number: int) -> Wish:
        """Return the visitor's choice for an order; the default if the order is paid by redirect."""
        row = self._db.execute("SELECT way, body FROM signed WHERE number = ?", (number,)).fetchone()
        return Wish() if row is None else Wish(row["way"], json.loads(row["body"])["display"])

    def charged(self, number: int, card: CardPayment) -> None:
        """Store that the card of an order was charged. A repeated call changes nothing."""
        self._db.execute(
            "INSERT INTO card_payments VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (number, card.authorization_id, card.last_four),
        )

    def card(self, number: int) -> CardPayment | None:
        """Return the virtual card that paid an order, or None."""
        row = self._db.execute(
            "SELECT authorization_id, last_four FROM card_payments WHERE number = ?", (number,)
        ).fetchone()
        return None if row is None else CardPayment(**row)

    def card_is_due(self, number: int) -> bool:
        """Return whether the order needs a virtual card that the shop has not charged yet."""
        return self.way(number) == "card" and self.card(number) is None
