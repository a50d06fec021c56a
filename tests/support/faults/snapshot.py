"""Reads the state of the campaign's merchants at one instant, and the state of each event's delivery."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from support.faults.books import Books

# One statement, so one snapshot.
_ORDERS = """
SELECT o.merchant_id::text AS merchant, o.order_id::text AS order, o.status, o.amount, o.captured, o.voided, o.refunded,
    o.events, o.transfers, (SELECT d.reference FROM order_details d
        WHERE d.merchant_id = o.merchant_id AND d.order_id = o.order_id) AS reference,
    ARRAY(SELECT ROW(m.kind, m.reference, m.amount) FROM movements m
        WHERE m.merchant_id = o.merchant_id AND m.order_id = o.order_id) AS movements,
    ARRAY(SELECT ROW(e.sequence, e.type, e.reference, e.amount, e.success) FROM events e
        WHERE e.merchant_id = o.merchant_id AND e.order_id = o.order_id ORDER BY e.sequence) AS told,
    ARRAY(SELECT ROW(i.number, i.amount, i.charge_id IS NOT NULL) FROM installments i
        WHERE i.merchant_id = o.merchant_id AND i.order_id = o.order_id ORDER BY i.number) AS plan,
    ARRAY(SELECT ROW(t.posting, sum(t.amount)::bigint, count(*), max(t.number)) FROM transfers t
        WHERE t.merchant_id = o.merchant_id AND t.order_id = o.order_id GROUP BY t.posting) AS ledger,
    ARRAY(SELECT ROW(d.sequence, d.tries) FROM deliveries d WHERE d.merchant_id = o.merchant_id
        AND d.order_id = o.order_id AND d.state = 'delivered') AS delivered
FROM orders o WHERE o.merchant_id = ANY ($1::uuid[])
"""
_CARDS = """
SELECT s.key::text, 'no charge of ours' AS what FROM card_simulator.charges s
    WHERE NOT EXISTS (SELECT FROM charges c WHERE c.charge_id = s.key)
UNION ALL SELECT c.order_id::text, 'paid ' || count(*) || ' times for installment ' || c.installment
    FROM charges c JOIN card_simulator.charges s ON s.key = c.charge_id WHERE s.approved
    GROUP BY c.merchant_id, c.order_id, c.installment HAVING count(*) > 1
"""


@dataclass
class Facts:
    """One order."""

    merchant: str
    order: str
    status: str
    amount: int
    captured: int
    voided: int
    refunded: int
    events: int
    transfers: int
    reference: str | None
    movements: list[tuple[str, str, int]]
    told: list[tuple[int, str, str | None, int, bool]]
    plan: list[tuple[int, int, bool]]
    ledger: list[tuple[str, int, int, int]]
    delivered: list[tuple[int, int]]

    @cached_property
    def rows(self) -> set[tuple[str, str, int]]:
        """Return the order's movements, by key."""
        return set(self.movements)

    @property
    def applied(self) -> Counter[tuple[str, str]]:
        """Return how often each key was applied."""
        return Counter((kind, reference) for kind, reference, _ in self.movements)


@dataclass
class Snapshot:
    """All orders of some merchants, by order id. `cards` has the charges that the card network should not have."""

    orders: dict[str, Facts] = field(default_factory=dict)
    cards: list[str] = field(default_factory=list)


def take(books: Books, merchants: list[str]) -> Snapshot:
    """Take a snapshot now."""
    rows = books.rows(_ORDERS, [UUID(merchant) for merchant in merchants])
    found = [Facts(**{name: _plain(value) for name, value in row.items()}) for row in rows]
    cards = [f"card {key}: {what}" for key, what in books.rows(_CARDS)]
    return Snapshot({facts.order: facts for facts in found}, cards)


def _plain(value: Any) -> Any:
    return [tuple(each) for each in value] if isinstance(value, list) else value
