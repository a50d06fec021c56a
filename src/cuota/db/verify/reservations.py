"""Checks the reservations of consumers' limits against their orders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from cuota.db.session import Session

_RESERVED = """SELECT consumer_id, ticket, merchant_id, order_id, amount, expires_at FROM consumer_reservations
    ORDER BY consumer_id, ticket"""
_ORDER = "SELECT status, amount + fee AS whole FROM orders WHERE merchant_id = $1 AND order_id = $2"
# These rows prove that the service ran later, by the real clock. A stopped service settles no reservations, and a restored backup
# still has the reservations of the time of the backup.
_SERVED_AT = "SELECT max(created_at) AS at FROM checkout_sessions WHERE merchant_id = $1"
LATE = timedelta(hours=1)


async def disagreements(session: Session) -> AsyncIterator[tuple[UUID, UUID, str, str]]:
    """Yield every reservation that disagrees, as (merchant id, order id, row, problem)."""
    for row in await session.fetch(_RESERVED):
        ids = row["merchant_id"], row["order_id"]
        name = f"consumer_reservations {row['consumer_id']} {row['ticket']}"
        order = await session.fetchrow(_ORDER, *ids)
        if order is None:
            yield *ids, name, "reserves for an order that does not exist"
        elif order["whole"] != row["amount"]:
            yield *ids, name, f"reserves {row['amount']}, the order is for {order['whole']}"
        served = await session.fetchrow(_SERVED_AT, row["merchant_id"])
        if served is not None and served["at"] is not None and row["expires_at"] + LATE < served["at"]:
            status = "no" if order is None else f"the {order['status']}"
            yield (
                *ids,
                name,
                f"expired at {row['expires_at']:%Y-%m-%d %H:%M} for {status} order and was not deleted",
            )
