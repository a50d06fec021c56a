"""Lists and finds a merchant's orders for its dashboard.

Pages follow the order ids, which increase with time. A page reads at most SCANNED orders, however few of them match, and then says
where the next page begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from cuota.core.order.order import Order
from cuota.db.order.columns import MONEY, order_of
from cuota.db.session import Session

SCANNED = 5000
FIRST, BEYOND = UUID(int=0), UUID(int=2**128 - 1)


class View(StrEnum):
    """A filter of the list."""

    ALL = "all"
    TO_CAPTURE = "to-capture"
    APPROVED = "approved"
    REFUNDED = "refunded"
    DISPUTED = "disputed"
    IN_CHECKOUT = "in-checkout"
    DECLINED = "declined"
    ABANDONED = "abandoned"


_FITS = {
    View.ALL: "true",
    View.TO_CAPTURE: "o.status = 'Approved' AND o.captured + o.voided < o.amount",
    View.APPROVED: "o.status = 'Approved'",
    View.REFUNDED: "o.refunded > 0",
    View.DISPUTED: "o.open_disputes > 0",
    View.IN_CHECKOUT: "o.status = 'Created'",
    View.DECLINED: "o.status = 'Declined'",
    View.ABANDONED: "o.status = 'Abandoned'",
}
_NEWEST = ("o.order_id < $2", "DESC")
_OLDEST = ("o.order_id > $2", "ASC")
_ALL = (
    "SELECT o.order_id FROM orders o WHERE o.merchant_id = $1 AND {beyond} ORDER BY o.order_id {way} LIMIT $3"
)
# A typed text may be several terms, a reference, or an id. For each meaning, orders are read in the order of their ids,
# up to the limit.
_NAMED = """SELECT n.order_id FROM (
        SELECT t.order_id FROM unnest($7::bigint[]) AS asked (term) CROSS JOIN LATERAL (SELECT o.order_id FROM order_terms o
            WHERE o.merchant_id = $1 AND o.term = asked.term AND {beyond} ORDER BY o.order_id {way} LIMIT $3) t
        UNION (SELECT o.order_id FROM order_details o WHERE o.merchant_id = $1 AND o.reference = $8 AND {beyond}
            ORDER BY o.order_id {way} LIMIT $3)
        UNION SELECT o.order_id FROM orders o WHERE o.merchant_id = $1 AND (o.order_id = $9 OR o.token = $9) AND {beyond}
    ) n ORDER BY n.order_id {way} LIMIT $3"""
_PAGE = """
WITH named AS ({named}), scanned AS (
    SELECT o.order_id, o.created_at, {fits} AS fits FROM named n JOIN orders o ON o.merchant_id = $1 AND o.order_id = n.order_id
)
SELECT ARRAY(SELECT o.order_id FROM scanned o WHERE o.fits AND ($4::timestamptz IS NULL OR o.created_at >= $4)
        AND ($5::timestamptz IS NULL OR o.created_at < $5) ORDER BY o.order_id {way} LIMIT $6) AS fitting,
    (SELECT count(*) FROM scanned) AS scanned, (SELECT o.order_id FROM scanned o ORDER BY o.order_id {back} LIMIT 1) AS last
"""
_ROWS = f"""
SELECT {MONEY}, d.reference, d.document #>> '{{consumer,givenNames}}' AS given, d.document #>> '{{consumer,surname}}' AS surname,
    p.payer, p.consumer_id, (SELECT c.card_last4 FROM charges c WHERE c.merchant_id = $1 AND c.order_id = o.order_id
        ORDER BY c.created_at DESC LIMIT 1) AS last4
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """The orders to list.

    `terms`, `reference` and `id` are the possible meanings of a typed text; all are None for a list without a search.

    `created_from` is included, `created_to` is not. `after` is the last order of the previous page.
    """

    view: View = View.ALL
    created_from: datetime | None = None
    created_to: datetime | None = None
    oldest: bool = False
    after: UUID | None = None
    terms: tuple[int, ...] | None = None
    reference: str | None = None
    id: UUID | None = None

    @property
    def scans(self) -> bool:
        """True if the statement may read orders that do not match."""
        return self.view is not View.ALL or bool(self.created_from or self.created_to)


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """One row of the list. `payer` is the JSON text of the consumer's data in the plan; None before the consumer agreed to one.

    `given` and `surname` are the name that the merchant sent. `last4` are the last digits of the card that was charged
    last.
    """

    order: Order
    reference: str
    given: str | None
    surname: str | None
    payer: str | None
    last4: str | None


@dataclass(frozen=True, slots=True)
class FoundOrders:
    """A page. The next one begins after `last`, which is None on the last page."""

    orders: tuple[ListedOrder, ...]
    last: UUID | None


async def page(session: Session, merchant_id: UUID, asked: Asked, limit: int) -> FoundOrders:
    """Return at most `limit` orders, in two round trips."""
    beyond, way = _OLDEST if asked.oldest else _NEWEST
    named = (_ALL if asked.terms is None else _NAMED).format(beyond=beyond, way=way)
    back = "DESC" if asked.oldest else "ASC"
    sql = _PAGE.format(named=named, fits=_FITS[asked.view], way=way, back=back)
    scan = SCANNED if asked.scans else limit + 1
    start = asked.after or (FIRST if asked.oldest else BEYOND)
    values: list[Any] = [merchant_id, start, scan, asked.created_from, asked.created_to, limit + 1]
    if asked.terms is not None:
        values += [list(asked.terms), asked.reference, asked.id]
    row = await session.fetchrow(sql, *values)
    assert row is not None
    fitting: list[UUID] = row["fitting"]
    last = row["last"] if row["scanned"] == scan else None
    if len(fitting) > limit:
        fitting = fitting[:limit]
        last = fitting[-1]
    return FoundOrders(await rows(session, merchant_id, fitting), last)


async def rows(session: Session, merchant_id: UUID, order_ids: list[UUID]) -> tuple[ListedOrder, ...]:
    """Return the rows of these orders, in this order."""
    found = (
        {row["order_id"]: row for row in await session.fetch(_ROWS, merchant_id, order_ids)}
        if order_ids
        else {}
    )
    return tuple(_listed(found[each]) for each in order_ids if each in found)


def _listed(row: Any) -> ListedOrder:
    return ListedOrder(
        order_of(row), row["reference"], row["given"], row["surname"], row["payer"], row["last4"]
    )
