"""Lists a merchant's orders in pages, newest first.

Pages follow the order ids, which increase with time, so a new order does not shift the pages. A page reads at most SCANNED
orders, however few of them match. This limits its cost without an extra index on the busy `orders` table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.order.order import Status
from cuota.db.order.columns import MONEY, MOVED, movements_of, order_of
from cuota.db.order.orders import OrderRecord
from cuota.db.session import Session

SCANNED = 2000
# A page ends after this many bytes of documents and movements. An order may have thousands of movements. The number of its events is
# about the number of its movements, and is known without reading them.
MOST_BYTES = 1024 * 1024
EVENT_BYTES = 200

_FITTING = """ARRAY(
        SELECT s.order_id FROM scanned s
        WHERE s.status = ANY ($5::text[]) AND ($6::timestamptz IS NULL OR s.created_at >= $6)
            AND ($7::timestamptz IS NULL OR s.created_at < $7)
        ORDER BY s.order_id DESC LIMIT $8
    ) AS fitting,
    (SELECT count(*) FROM scanned) AS scanned,
    (SELECT s.order_id FROM scanned s ORDER BY s.order_id LIMIT 1) AS last"""
_BY_TIME = f"""
WITH scanned AS (
    SELECT order_id, status, created_at FROM orders
    WHERE merchant_id = $1 AND order_id < $2 AND order_id >= $3 ORDER BY order_id DESC LIMIT $4
)
SELECT {_FITTING}
"""
_BY_REFERENCE = f"""
WITH named AS (
    SELECT order_id FROM order_details
    WHERE merchant_id = $1 AND reference = $9 AND order_id < $2 AND order_id >= $3 ORDER BY order_id DESC LIMIT $4
), scanned AS (
    SELECT o.order_id, o.status, o.created_at FROM named n JOIN orders o ON o.merchant_id = $1 AND o.order_id = n.order_id
)
SELECT {_FITTING}
"""
_BYTES = f"octet_length(d.document::text) + {EVENT_BYTES} * o.events"
_RECORDS = f"""
WITH asked AS (
    SELECT o.*, d.document, {_BYTES} AS bytes, sum({_BYTES}) OVER (ORDER BY o.order_id DESC) AS bytes_so_far
    FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])
)
SELECT {MONEY}, o.token, o.document, p.payer, {MOVED.columns}
FROM asked o LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id
    {MOVED.join}
WHERE o.bytes_so_far - o.bytes < $3 ORDER BY o.order_id DESC
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filter of the orders to list. None matches all orders. `created_from` is included, `created_to` is not."""

    reference: str | None = None
    statuses: tuple[Status, ...] = ()
    created_from: datetime | None = None
    created_to: datetime | None = None

    @property
    def scans(self) -> bool:
        """True if the statement may read orders that do not match."""
        return bool(self.statuses or self.created_from or self.created_to)


@dataclass(frozen=True, slots=True)
class ListedOrders:
    """Orders, newest first. The next page begins at `last`, which is None on the last page."""

    records: tuple[OrderRecord, ...]
    last: UUID | None


async def page(
    session: Session, merchant_id: UUID, filters: Filters, before: UUID, floor: UUID, limit: int
) -> ListedOrders:
    """Return at most `limit` orders whose id is below `before` and not below `floor`, in two round trips."""
    scan = SCANNED if filters.scans else limit + 1
    statuses = [status.value for status in filters.statuses or tuple(Status)]
    asked: list[object] = [
        merchant_id,
        before,
        floor,
        scan,
        statuses,
        filters.created_from,
        filters.created_to,
    ]
    if filters.reference is None:
        row = await session.fetchrow(_BY_TIME, *asked, limit + 1)
    else:
        row = await session.fetchrow(_BY_REFERENCE, *asked, limit + 1, filters.reference)
    assert row is not None
    fitting: Sequence[UUID] = row["fitting"]
    last = row["last"] if row["scanned"] == scan else None
    if len(fitting) > limit:
        fitting = fitting[:limit]
        last = fitting[-1]
    rows = await session.fetch(_RECORDS, merchant_id, fitting, MOST_BYTES) if fitting else []
    if len(rows) < len(fitting):
        last = rows[-1]["order_id"]
    return ListedOrders(tuple(map(_record_of, rows)), last)


def _record_of(row: Any) -> OrderRecord:
    return OrderRecord(order_of(row), row["token"], row["document"], movements_of(row), row["payer"])
