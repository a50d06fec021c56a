"""Finds what belongs to one consumer. Several people can open the same checkout, so an order may have rows of more than one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from cuota.db.plan.addressee import addressee
from cuota.db.session import Session

_FOUND = """
SELECT merchant_id, order_id FROM plans WHERE consumer_id = $1
UNION SELECT merchant_id, order_id FROM decisions WHERE consumer_id = $1 AND NOT approved
UNION SELECT merchant_id, order_id FROM reviews WHERE consumer_id = $1
UNION SELECT merchant_id, order_id FROM checkout_sessions WHERE consumer_id = $1
UNION SELECT merchant_id, order_id FROM order_details
    WHERE erased_at IS NULL AND document #>> '{consumer,phoneNumber}' = $2
ORDER BY merchant_id, order_id
"""
# An order belongs to the consumer who pays, was declined or was referred, or whose card is being charged. A row in `plans` alone shows
# only that a consumer pressed the button that pays, perhaps with a card that failed. An order without any of these belongs to the owner of the
# number that the merchant gave, or to the only person who confirmed a number.
_OWNED = """
SELECT o.order_id, CASE
        WHEN o.status = 'Approved' THEN coalesce(p.consumer_id = $3, false)
        WHEN o.status = 'Declined' AND d.consumer_id IS NOT NULL THEN d.consumer_id = $3
        WHEN v.consumer_id IS NOT NULL THEN v.consumer_id = $3
        WHEN p.consumer_id IS NOT NULL AND (o.status = 'Declined' OR o.charging IS NOT NULL) THEN p.consumer_id = $3
        WHEN t.document #>> '{consumer,phoneNumber}' IS NOT NULL THEN t.document #>> '{consumer,phoneNumber}' = $4
        ELSE coalesce(p.consumer_id = $3, true)
            AND NOT EXISTS (SELECT FROM checkout_sessions s WHERE s.merchant_id = $1 AND s.order_id = o.order_id AND s.consumer_id <> $3)
    END AS whole,
    coalesce(d.consumer_id = $3, false) OR coalesce(p.consumer_id = $3, false) OR coalesce(v.consumer_id = $3, false) OR EXISTS (
        SELECT FROM checkout_sessions s WHERE s.merchant_id = $1 AND s.order_id = o.order_id AND s.consumer_id = $3) AS proved,
    o.status = 'Created' AND coalesce(p.consumer_id = $3, false) AS tried
FROM orders o JOIN order_details t ON t.merchant_id = $1 AND t.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id
    LEFT JOIN reviews v ON v.merchant_id = $1 AND v.order_id = o.order_id
    LEFT JOIN LATERAL (SELECT c.consumer_id FROM decisions c WHERE c.merchant_id = $1 AND c.order_id = o.order_id
        AND NOT c.approved ORDER BY c.decided_at DESC LIMIT 1) d ON true
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[]) ORDER BY o.order_id
"""
# $3 is the consumer.
_MESSAGE = f"""CASE {addressee("kind")}
    WHEN 'decision' THEN EXISTS (SELECT FROM decisions d WHERE d.merchant_id = $1 AND d.order_id = messages.order_id
        AND d.consumer_id = $3 AND NOT d.approved)
    WHEN 'review' THEN EXISTS (SELECT FROM reviews v WHERE v.merchant_id = $1 AND v.order_id = messages.order_id AND v.consumer_id = $3)
    ELSE EXISTS (SELECT FROM plans p WHERE p.merchant_id = $1 AND p.order_id = messages.order_id AND p.consumer_id = $3) END"""
# The condition for the rows of one consumer, in the tables of an order that may have rows of several.
OWN_ROWS = {
    "plans": "consumer_id = $3",
    "decisions": "consumer_id = $3",
    "reviews": "consumer_id = $3",
    "checkout_sessions": "consumer_id = $3",
    "messages": _MESSAGE,
}


@dataclass(slots=True)
class Theirs:
    """The orders of one consumer, by merchant, and the `parts`: orders of somebody else with some rows of this consumer.

    `named` are orders of somebody else for which the shop gave this consumer's number. `proved` are the orders in which the consumer
    confirmed a number by a code. `tried`: in the open checkout of somebody else, this consumer's card failed.
    """

    orders: dict[UUID, list[UUID]] = field(default_factory=lambda: defaultdict(list))
    parts: dict[UUID, list[UUID]] = field(default_factory=lambda: defaultdict(list))
    named: dict[UUID, list[UUID]] = field(default_factory=lambda: defaultdict(list))
    proved: set[UUID] = field(default_factory=set)
    tried: bool = False

    def merchants(self) -> Iterator[tuple[UUID, list[UUID], list[UUID]]]:
        """Return each merchant with the consumer's orders, and with all orders that have rows of the consumer."""
        for merchant_id in sorted({*self.orders, *self.parts}):
            whole, part = self.orders.get(merchant_id, []), self.parts.get(merchant_id, [])
            yield merchant_id, whole, sorted([*whole, *part])


async def find(session: Session, consumer_id: UUID, phone: str) -> Theirs:
    """Return the consumer's orders, the orders that contain the phone number and belong to nobody else, and the parts."""
    candidates: dict[UUID, list[UUID]] = defaultdict(list)
    for row in await session.fetch(_FOUND, consumer_id, phone):
        candidates[row["merchant_id"]].append(row["order_id"])
    found = Theirs()
    for merchant_id, order_ids in candidates.items():
        for row in await session.fetch(_OWNED, merchant_id, order_ids, consumer_id, phone):
            if row["whole"]:
                found.orders[merchant_id].append(row["order_id"])
            elif row["proved"]:
                found.parts[merchant_id].append(row["order_id"])
                found.tried |= row["tried"]
            else:
                found.named[merchant_id].append(row["order_id"])
            if row["proved"]:
                found.proved.add(row["order_id"])
    return found
