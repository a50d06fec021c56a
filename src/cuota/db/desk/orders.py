"""Lists and finds a merchant's orders for its dashboard.

Pages are sorted by order id, which increases with time, or by amount. A page reads at most SCANNED orders, however few of them
match, and then says where the next page begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from cuota.core.desk.sort import Sort
from cuota.core.order.id_bounds import BEYOND, FIRST
from cuota.core.order.order import Order
from cuota.db.order.columns import MONEY, order_of
from cuota.db.session import Session

SCANNED = 5000


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
# The condition that begins a page after the order $2, and the order of the rows. A list by time ends at a bound of the ids. An order's
# amount never changes, so the order's id is enough to find its position.
_AMOUNT = (
    "coalesce((SELECT a.amount FROM orders a WHERE a.merchant_id = $1 AND a.order_id = $2), {otherwise})"
)
_SORTED = {
    Sort.NEWEST: ("o.order_id < $2 AND o.order_id >= {end}", "o.order_id DESC", "o.order_id"),
    Sort.OLDEST: ("o.order_id > $2 AND o.order_id < {end}", "o.order_id", "o.order_id DESC"),
    Sort.LARGEST: (
        f"(o.amount, o.order_id) < ({_AMOUNT.format(otherwise=2**63 - 1)}, $2)",
        "o.amount DESC, o.order_id DESC",
        "o.amount, o.order_id",
    ),
    Sort.SMALLEST: (
        f"(o.amount, o.order_id) > ({_AMOUNT.format(otherwise=0)}, $2)",
        "o.amount, o.order_id",
        "o.amount DESC, o.order_id DESC",
    ),
}
_ALL = "SELECT o.order_id FROM orders o WHERE o.merchant_id = $1 AND {beyond} ORDER BY {way} LIMIT $3"
# A text may be several terms, a reference, or an id. The statement reads each of them in the order of the ids, up to the limit.
# If the list is sorted by amount, the statement reads the newest matches and then sorts them, because terms have no amounts.
_NAMED = """SELECT n.order_id FROM (
        SELECT t.order_id FROM unnest($7::bigint[]) AS asked (term) CROSS JOIN LATERAL (SELECT o.order_id FROM order_terms o
            WHERE o.merchant_id = $1 AND o.term = asked.term AND {beyond} ORDER BY {way} LIMIT $3) t
        UNION (SELECT o.order_id FROM order_details o WHERE o.merchant_id = $1 AND o.reference = $8 AND {beyond}
            ORDER BY {way} LIMIT $3)
        UNION SELECT o.order_id FROM orders o WHERE o.merchant_id = $1 AND (o.order_id = $9 OR o.token = $9) AND {beyond}
    ) n ORDER BY {named_way} LIMIT $3"""
_PAGE = """
WITH named AS ({named}), scanned AS (
    SELECT o.order_id, o.amount, o.created_at, {fits} AS fits FROM named n JOIN orders o ON o.merchant_id = $1 AND o.order_id = n.order_id
    WHERE {also}
)
SELECT ARRAY(SELECT o.order_id FROM scanned o WHERE o.fits AND ($4::timestamptz IS NULL OR o.created_at >= $4)
        AND ($5::timestamptz IS NULL OR o.created_at < $5) ORDER BY {way} LIMIT $6) AS fitting,
    (SELECT count(*) FROM scanned) AS scanned, (SELECT o.order_id FROM scanned o ORDER BY {back} LIMIT 1) AS last
"""
_ENDS = """SELECT (SELECT order_id FROM orders WHERE merchant_id = $1 ORDER BY order_id DESC LIMIT 1) AS newest,
    (SELECT order_id FROM orders WHERE merchant_id = $1 ORDER BY order_id LIMIT 1) AS oldest"""
# If one person's card failed, and then another person in the same checkout was declined, the plan names the wrong person.
_ROWS = f"""
SELECT {MONEY}, d.reference, d.document #>> '{{consumer,givenNames}}' AS given, d.document #>> '{{consumer,surname}}' AS surname,
    p.payer, p.consumer_id, (SELECT c.card_last4 FROM charges c WHERE c.merchant_id = $1 AND c.order_id = o.order_id
        ORDER BY c.created_at DESC LIMIT 1) AS last4
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id AND (o.status <> 'Declined' OR NOT EXISTS (
        SELECT FROM decisions n WHERE n.merchant_id = $1 AND n.order_id = o.order_id AND NOT n.approved AND n.consumer_id <> p.consumer_id))
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """The orders to list.

    `terms`, `reference` and `id` are the possible meanings of a typed text; all are None for a list without a search.

    `created_from` is included, `created_to` is not. `bounds` are the ids of these times: in a list by time, no order below the first
    or from the second one on is read. `after` is the last order of the previous page.
    """

    view: View = View.ALL
    created_from: datetime | None = None
    created_to: datetime | None = None
    bounds: tuple[UUID, UUID] = (FIRST, BEYOND)
    sort: Sort = Sort.NEWEST
    after: UUID | None = None
    terms: tuple[int, ...] | None = None
    reference: str | None = None
    id: UUID | None = None

    @property
    def scans(self) -> bool:
        """True if the statement may read orders that do not match."""
        return self.view is not View.ALL or bool(self.created_from or self.created_to)

    @property
    def sorts_matches(self) -> bool:
        """True if the statement reads the newest matches of a search and then sorts them.

        Then the list ends after these matches.
        """
        return self.terms is not None and self.sort.by_amount


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
    scan = SCANNED if asked.scans or asked.sorts_matches else limit + 1
    start, end = _ends_of(asked)
    sql = statement(asked)
    values: list[Any] = [merchant_id, start, scan, asked.created_from, asked.created_to, limit + 1]
    if asked.terms is not None:
        values += [list(asked.terms), asked.reference, asked.id]
    if not asked.sort.by_amount:
        values.append(end)
    row = await session.fetchrow(sql, *values)
    assert row is not None
    fitting: list[UUID] = row["fitting"]
    last = row["last"] if row["scanned"] == scan and not asked.sorts_matches else None
    if len(fitting) > limit:
        fitting = fitting[:limit]
        last = fitting[-1]
    return FoundOrders(await rows(session, merchant_id, fitting), last)


def _ends_of(asked: Asked) -> tuple[UUID, UUID]:
    """Return the id after which the page begins, and the id at which the list ends."""
    low, high = asked.bounds
    match asked.sort:
        case Sort.NEWEST:
            return min(asked.after or BEYOND, high), low
        case Sort.OLDEST:
            # The first bound belongs to the list.
            return max(asked.after or FIRST, UUID(int=max(low.int - 1, 0))), high
        case Sort.LARGEST:
            return asked.after or BEYOND, FIRST
        case _:
            return asked.after or FIRST, BEYOND


def statement(asked: Asked) -> str:
    """Return the statement that finds the orders of a page."""
    beyond, way, back = _SORTED[asked.sort]
    beyond = beyond.replace("{end}", "$7" if asked.terms is None else "$10")
    if asked.terms is None:
        named, also = _ALL.format(beyond=beyond, way=way), "true"
    elif asked.sort.by_amount:
        newest = _SORTED[Sort.NEWEST][1]
        named = _NAMED.format(beyond="true", way=newest, named_way=newest.replace("o.", "n."))
        also = beyond
    else:
        named, also = _NAMED.format(beyond=beyond, way=way, named_way=way.replace("o.", "n.")), "true"
    return _PAGE.format(named=named, fits=_FITS[asked.view], way=way, back=back, also=also)


async def ends(session: Session, merchant_id: UUID) -> list[UUID]:
    """Return the id of the newest and of the oldest order; empty if there is none."""
    row = await session.fetchrow(_ENDS, merchant_id)
    return [] if row is None or row["newest"] is None else [row["newest"], row["oldest"]]


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
