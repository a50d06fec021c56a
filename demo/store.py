"""The shop's database: visitors, carts, orders, webhooks, and each money operation, which is stored before its call.

SQLite answers in microseconds, so the handlers call it directly in the event loop's thread.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from .catalog import Cart, Line, cart_of
from .records import JsonObject, WebhookEvent
from .signed import SignedOrders, Wish

FINAL = {"Approved", "Declined", "Abandoned"}
_SCHEMA = """
CREATE TABLE IF NOT EXISTS visitors (session TEXT PRIMARY KEY, csrf TEXT NOT NULL, notice TEXT);
CREATE TABLE IF NOT EXISTS carts (
    session TEXT NOT NULL, sku TEXT NOT NULL, quantity INTEGER NOT NULL, PRIMARY KEY (session, sku));
CREATE TABLE IF NOT EXISTS orders (
    number INTEGER PRIMARY KEY, session TEXT NOT NULL, checkout_key TEXT NOT NULL UNIQUE,
    lines TEXT NOT NULL, shipping INTEGER NOT NULL, amount INTEGER NOT NULL, created TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'New', provider_order_id TEXT, redirect_url TEXT);
CREATE TABLE IF NOT EXISTS operations (
    reference TEXT PRIMARY KEY, number INTEGER NOT NULL, kind TEXT NOT NULL, amount INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending', created TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told (
    event_id TEXT PRIMARY KEY, order_id TEXT NOT NULL, sequence INTEGER NOT NULL, type TEXT NOT NULL,
    amount INTEGER NOT NULL, message TEXT NOT NULL, happened TEXT NOT NULL, came TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS told_of_order ON told (order_id, sequence);
"""


@dataclass(frozen=True)
class Visitor:
    """A browser: the value of its cookie, and the CSRF token that its forms must contain."""

    session: str
    csrf: str


@dataclass(frozen=True)
class ShopOrder:
    """The shop's order, with amounts in cents. Its status is New until the provider has it, then the provider's status."""

    number: int
    session: str
    checkout_key: str
    lines: tuple[Line, ...]
    shipping: int
    amount: int
    created: str
    status: str
    provider_order_id: str | None
    redirect_url: str | None

    @property
    def name(self) -> str:
        """The order number that people and the provider see."""
        return f"AO-{self.number}"


@dataclass(frozen=True)
class ShopOperation:
    """A capture, void or refund. Its state is pending until the answer is known, then done or refused."""

    reference: str
    number: int
    kind: str
    amount: int
    state: str = "pending"
    created: str = ""


class Store:
    """The shop's SQLite file. Every method is one short transaction."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / "shop.sqlite3", isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(_SCHEMA)
        self.signed = SignedOrders(self._db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def visitor(self, session: str) -> Visitor:
        """Find the visitor with this cookie, or make a new visitor with a new cookie."""
        row = self._db.execute("SELECT session, csrf FROM visitors WHERE session = ?", (session,)).fetchone()
        if row is not None:
            return Visitor(**row)
        new = Visitor(secrets.token_urlsafe(24), secrets.token_urlsafe(24))
        self._db.execute("INSERT INTO visitors (session, csrf) VALUES (?, ?)", (new.session, new.csrf))
        return new

    def leave_notice(self, session: str, tone: str, text: str) -> None:
        """Store a notice for the visitor's next page. `tone` is `good` or `bad`."""
        notice = json.dumps({"tone": tone, "text": text})
        self._db.execute("UPDATE visitors SET notice = ? WHERE session = ?", (notice, session))

    def take_notice(self, session: str) -> dict[str, str] | None:
        """Return and delete the visitor's notice, so that it is shown once."""
        row = self._db.execute("SELECT notice FROM visitors WHERE session = ?", (session,)).fetchone()
        if row is None or row["notice"] is None:
            return None
        self._db.execute("UPDATE visitors SET notice = NULL WHERE session = ?", (session,))
        notice: dict[str, str] = json.loads(row["notice"])
        return notice

    def cart(self, session: str) -> Cart:
        """Read the visitor's cart at today's prices."""
        rows = self._db.execute("SELECT sku, quantity FROM carts WHERE session = ?", (session,))
        return cart_of({row["sku"]: row["quantity"] for row in rows})

    def put(self, session: str, sku: str, quantity: int) -> None:
        """Set the quantity of a product in the cart."""
        self._db.execute("INSERT OR REPLACE INTO carts VALUES (?, ?, ?)", (session, sku, quantity))

    def clear_cart(self, session: str) -> None:
        """Empty the cart after it is paid."""
        self._db.execute("DELETE FROM carts WHERE session = ?", (session,))

    def place(self, session: str, checkout_key: str, cart: Cart) -> ShopOrder:
        """Store an order before the provider is called. A repeated call with the same key returns the same order."""
        lines = json.dumps([asdict(line) for line in cart.lines])
        self._db.execute(
            "INSERT INTO orders (number, session, checkout_key, lines, shipping, amount, created)"
            " VALUES ((SELECT coalesce(max(number), 1000) + 1 FROM orders), ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (checkout_key) DO NOTHING",
            (session, checkout_key, lines, cart.shipping, cart.amount, _now()),
        )
        return _order(
            self._db.execute("SELECT * FROM orders WHERE checkout_key = ?", (checkout_key,)).fetchone()
        )

    def sign(
        self, session: str, wish: Wish, cart: Cart, write: Callable[[ShopOrder], str]
    ) -> tuple[ShopOrder, str]:
        """Find the open order for this visitor, choice and cart, with its signed text; or place a new one.

        `write` makes the text of a new order. Placing and storing is one transaction, so that the second of two
        simultaneous clicks finds the order of the first.
        """
        fits = wish.fits(session, cart)
        found = self.signed.find(fits)
        if found is not None:
            order = self.order(found[0])
            assert order is not None
            return order, found[1]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            order = self.place(session, str(uuid.uuid4()), cart)
            text = write(order)
            self.signed.keep(order.number, fits, wish.way, text)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        return order, text

    def created(self, number: int, provider_order_id: str, redirect_url: str) -> None:
        """Store the provider's id of an order. Every later call needs the id."""
        # A webhook may arrive before the answer with the id. Then the status in the webhook counts.
        record = self.newest_record(provider_order_id)
        status = "Created" if record is None else record["orderStatus"]
        self._db.execute(
            "UPDATE orders SET status = ?, provider_order_id = ?, redirect_url = ?"
            " WHERE number = ? AND status = 'New'",
            (status, provider_order_id, redirect_url, number),
        )

    def link(self, number: int, provider_order_id: str) -> None:
        """Store the provider's id of an order that was opened with the shop's signed text."""
        self._db.execute(
            "UPDATE orders SET status = 'Created', provider_order_id = ? WHERE number = ? AND status = 'New'",
            (provider_order_id, number),
        )

    def settle(self, number: int, status: str) -> bool:
        """Store the provider's status of an order. A final status never changes. Return True if the status became final now."""
        changed = self._db.execute(
            "UPDATE orders SET status = ? WHERE number = ? AND status <> ?"
            " AND status NOT IN ('Approved', 'Declined', 'Abandoned')",
            (status, number, status),
        )
        return changed.rowcount == 1 and status in FINAL

    def order(self, number: int) -> ShopOrder | None:
        """Find one order."""
        if number > 999_999_999:  # SQLite does not accept integers of more than 64 bits
            return None
        row = self._db.execute("SELECT * FROM orders WHERE number = ?", (number,)).fetchone()
        return None if row is None else _order(row)

    def order_at_provider(self, order_id: str) -> ShopOrder | None:
        """Find an order by the provider's id."""
        row = self._db.execute("SELECT * FROM orders WHERE provider_order_id = ?", (order_id,)).fetchone()
        return None if row is None else _order(row)

    def orders(self) -> list[ShopOrder]:
        """List the latest orders, newest first. An order that was signed but never opened is left out."""
        found = self._db.execute(
            "SELECT * FROM orders WHERE status <> 'New' OR number NOT IN (SELECT number FROM signed)"
            " ORDER BY number DESC LIMIT 50"
        )
        return [_order(row) for row in found]

    def write_down(self, operation: ShopOperation) -> ShopOperation:
        """Store an operation before its call, and return the stored operation with its reference.

        A refused operation may be replaced by one with another amount. A pending or done operation stays as it is.
        """
        self._db.execute(
            "INSERT INTO operations (reference, number, kind, amount, created) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (reference) DO UPDATE SET amount = excluded.amount, state = 'pending'"
            " WHERE state = 'refused' AND number = excluded.number AND kind = excluded.kind",
            (operation.reference, operation.number, operation.kind, operation.amount, _now()),
        )
        found = self._db.execute("SELECT * FROM operations WHERE reference = ?", (operation.reference,))
        return ShopOperation(**found.fetchone())

    def finish(self, reference: str, state: str) -> None:
        """Store that an operation was `done` or `refused`. A done operation stays done."""
        self._db.execute(
            "UPDATE operations SET state = ? WHERE reference = ? AND state <> 'done'", (state, reference)
        )

    def pending(self, number: int) -> list[ShopOperation]:
        """List the operations of an order whose answer never arrived."""
        found = self._db.execute(
            "SELECT * FROM operations WHERE number = ? AND state = 'pending' ORDER BY created", (number,)
        )
        return [ShopOperation(**row) for row in found]

    def asked_for(self, number: int) -> set[str]:
        """Return the references of an order's operations that moved money, or may have moved money."""
        found = self._db.execute(
            "SELECT reference FROM operations WHERE number = ? AND state <> 'refused'", (number,)
        )
        return {row["reference"] for row in found}

    def keep_told(self, event: WebhookEvent, body: str) -> bool:
        """Store the event and the body of a webhook. Return False if the event was stored before."""
        inserted = self._db.execute(
            "INSERT INTO told (event_id, order_id, sequence, type, amount, message, happened, came, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (event_id) DO NOTHING",
            (*astuple(event), _now(), body),
        )
        return inserted.rowcount == 1

    def told(self, order_id: str) -> list[WebhookEvent]:
        """List the events of an order that webhooks delivered, newest first."""
        found = self._db.execute(
            "SELECT event_id, order_id, sequence, type, amount, message, happened FROM told"
            " WHERE order_id = ? ORDER BY sequence DESC",
            (order_id,),
        )
        return [WebhookEvent(**row) for row in found]

    def bodies(self) -> list[str]:
        """Return the bodies of all stored webhooks."""
        return [row["body"] for row in self._db.execute("SELECT body FROM told")]

    def newest_record(self, order_id: str) -> JsonObject | None:
        """Return the order's record in its newest event. The newest event may have arrived before an older one."""
        row = self._db.execute(
            "SELECT body FROM told WHERE order_id = ? ORDER BY sequence DESC LIMIT 1", (order_id,)
        ).fetchone()
        record: JsonObject | None = None
        if row is not None:
            record = json.loads(row["body"], parse_float=Decimal).get("order")
        return record


def _order(row: sqlite3.Row) -> ShopOrder:
    return ShopOrder(**{**row, "lines": tuple(Line(**line) for line in json.loads(row["lines"]))})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
