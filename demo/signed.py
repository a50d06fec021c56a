"""Orders that are paid in a window on the shop's page: written down and signed before the shopper's click."""

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
# A text serves as long as its order can still be paid: a virtual-card order until the shop has charged the card.
_OPEN = """SELECT s.number, s.body FROM signed s JOIN orders o ON o.number = s.number
    WHERE s.fits = ? AND (o.status IN ('New', 'Created') OR (o.status = 'Approved' AND s.way = 'card'
        AND NOT EXISTS (SELECT 1 FROM card_payments c WHERE c.number = s.number)))"""


@dataclass(frozen=True)
class Wish:
    """How the window is wanted: which kind of checkout, and how it is shown."""

    way: str = "standard"
    display: str = "popup"

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Wish:
        """Read it from an address or a form; what is not known becomes what is usual."""
        way, display = given.get("way", ""), given.get("display", "")
        return cls(way if way in WAYS else "standard", display if display in DISPLAYS else "popup")

    def fits(self, session: str, cart: Cart) -> str:
        """What two clicks must share to be about one order."""
        lines = [asdict(line) for line in cart.lines]
        return json.dumps([session, asdict(self), lines, cart.amount])


@dataclass(frozen=True)
class CardPayment:
    """What the shop keeps of a virtual card: never its number."""

    authorization_id: str
    last_four: str


class SignedOrders:
    """The signed texts, and what was charged on virtual cards. Part of the shop's one SQLite file."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._db.executescript(_SCHEMA)

    def find(self, fits: str) -> tuple[int, str] | None:
        """The open order that fits, and its text."""
        row = self._db.execute(_OPEN, (fits,)).fetchone()
        return None if row is None else (row["number"], row["body"])

    def keep(self, number: int, fits: str, way: str, body: str) -> None:
        """Write down the text of an order; an older one that fitted is over."""
        self._db.execute("UPDATE signed SET fits = fits || number WHERE fits = ?", (fits,))
        self._db.execute("INSERT INTO signed VALUES (?, ?, ?, ?)", (number, fits, way, body))

    def over(self, number: int) -> None:
        """The order has ended: the next click is about a new one."""
        self._db.execute("UPDATE signed SET fits = number WHERE number = ?", (number,))

    def way(self, number: int) -> str | None:
        """Which kind of checkout an order was signed for; None where it is paid by the redirect."""
        row = self._db.execute("SELECT way FROM signed WHERE number = ?", (number,)).fetchone()
        return None if row is None else str(row["way"])

    def wish(self, number: int) -> Wish:
        """How the window of an order was wanted; the usual where it is paid by the redirect."""
        row = self._db.execute("SELECT way, body FROM signed WHERE number = ?", (number,)).fetchone()
        return Wish() if row is None else Wish(row["way"], json.loads(row["body"])["display"])

    def charged(self, number: int, card: CardPayment) -> None:
        """Remember that the card was charged."""
        self._db.execute(
            "INSERT INTO card_payments VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (number, card.authorization_id, card.last_four),
        )

    def card(self, number: int) -> CardPayment | None:
        """The card that paid an order."""
        row = self._db.execute(
            "SELECT authorization_id, last_four FROM card_payments WHERE number = ?", (number,)
        ).fetchone()
        return None if row is None else CardPayment(**row)

    def card_is_due(self, number: int) -> bool:
        """Whether an order is to be paid by a virtual card that the shop has not charged yet."""
        return self.way(number) == "card" and self.card(number) is None
