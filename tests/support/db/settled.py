"""Helpers for tests of settlement: a merchant's terms and bank account, and the jobs that write lines and
close batches."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from cuota.db.webhook import events
from cuota.flows.context import Context
from cuota.flows.payout.close_batches import close_merchant
from cuota.flows.payout.settle_movements import settle_merchant
from support.own_service import Own

TERMS = {
    "percent": 0, "fixed": 0, "refund_fee": "kept", "payout": "daily", "minimum": 0, "reserve": 0, "reserve_days": 0,
    "time_zone": "America/New_York", "cutoff": "00:00",
}  # fmt: skip


async def give_terms(own: Own, merchant_id: UUID, **changed: Any) -> None:
    """Write a version of a merchant's terms that is in force from now on."""
    terms = {**TERMS, **changed}
    async with own.owner() as connection:
        await connection.execute(
            """INSERT INTO merchant_terms (merchant_id, version, valid_from, percent, fixed, refund_fee, payout, minimum,
                reserve, reserve_days, time_zone, cutoff, created_at)
            SELECT $1, 1 + count(*), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::time, $2
            FROM merchant_terms WHERE merchant_id = $1""",
            merchant_id, own.service.clock.now() - timedelta(seconds=1), *terms.values(),
        )  # fmt: skip


async def take_accounts(own: Own, merchant_id: UUID) -> None:
    """Take away the test account that the sandbox gave to a merchant."""
    async with own.owner() as connection:
        await connection.execute("DELETE FROM bank_accounts WHERE merchant_id = $1", merchant_id)


async def give_account(own: Own, merchant_id: UUID) -> UUID:
    """Save a bank account that is in force."""
    account_id = uuid4()
    async with own.owner() as connection:
        await connection.execute(
            "INSERT INTO bank_accounts VALUES ($1, $2, $3, $3, '6789', $4, $4)",
            merchant_id, account_id, secrets.token_bytes(8), own.service.clock.now(),
        )  # fmt: skip
    return account_id


async def publish(context: Context, merchant_id: UUID) -> None:
    """Give every event its position in the merchant's feed."""
    while await events.publish(context.pool, merchant_id, context.now(), 1000):
        pass


async def settled(context: Context, merchant_id: UUID, most: int = 1000) -> None:
    """Write the lines of every movement that belongs to the open batch."""
    await publish(context, merchant_id)
    while await settle_merchant(context, merchant_id, most):
        pass


async def closed(context: Context, merchant_id: UUID) -> int:
    """Close the batch of every cutoff that has passed. Return how many were closed."""
    await publish(context, merchant_id)
    done = 0
    while closings := await close_merchant(context, merchant_id):
        done += len(closings)
    return done


async def rows(own: Own, sql: str, *values: object) -> list[dict[str, Any]]:
    """Read rows as the owner of the database."""
    async with own.owner() as connection:
        return [dict(row) for row in await connection.fetch(sql, *values)]


LINES = "SELECT * FROM settlement_lines WHERE merchant_id = $1 ORDER BY number"
PAYOUTS = "SELECT * FROM payouts WHERE merchant_id = $1 ORDER BY number"
SETTLEMENT = "SELECT * FROM settlements WHERE merchant_id = $1"


async def cutoff_of(own: Own, merchant_id: UUID) -> datetime | None:
    """Return the merchant's next cutoff."""
    found = await rows(own, SETTLEMENT, merchant_id)
    return found[0]["close_at"] if found else None


async def post_fee(own: Own, order_id: str, cents: int, posting: str = "merchant_fee") -> None:
    """Post a fee with the newest movement of an order. As in the service, both have the same cause and
    transaction."""
    sides = ("merchant_payable", "merchant_fees")
    debit, credit = sides if posting == "merchant_fee" else reversed(sides)
    async with own.owner() as connection, connection.transaction():
        await connection.execute(
            """INSERT INTO transfers SELECT t.merchant_id, t.order_id, t.number + 1, $2, t.cause, $3, $4, $5, t.currency,
                t.created_at FROM transfers t WHERE t.order_id = $1::text::uuid ORDER BY t.number DESC LIMIT 1""",
            order_id, posting, debit, credit, cents,
        )  # fmt: skip
        await connection.execute(
            "UPDATE orders SET transfers = transfers + 1, version = version + 1 WHERE order_id = $1::text::uuid",
            order_id,
        )
