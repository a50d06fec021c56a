"""Makes a payout as the closing of a batch does, and reads its rows for the tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from cuota.core.payout.arrival import business_days_after, day_at_bank
from cuota.core.payout.bank_account import BankDetails, read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.flows.context import Context
from cuota.flows.merchant.seal_bank_account import seal

NUMBERS = {account.behaviour: account.number for account in TEST_ACCOUNTS}
CHANGED = {behaviour: read_bank_details(TEST_ROUTING, number) for behaviour, number in NUMBERS.items()}


async def make_payout(
    context: Context,
    merchant_id: UUID,
    amount: int = 12_345,
    behaviour: str = "pays",
    at: datetime | None = None,
) -> UUID:
    """Make a payout of all open lines and one more of this amount, with its posting and its event. It goes to the test account with this behavior."""
    now = at or context.now()
    async with context.pool.session() as session, session.transaction():
        await session.fetchrow(
            "SELECT post_merchant_transfer($1, 'adjustment', $2, 'losses', 'merchant_payable', $3, 'USD', $4, 'adjustment', $3)",
            merchant_id, uuid4(), amount, now,
        )  # fmt: skip
        account_id = await _account(context, session, merchant_id, CHANGED[behaviour], now)
        payout_id, number = uuid4(), 1
        row = await session.fetchrow(
            """UPDATE settlements s SET payouts = s.payouts + 1, closed = s.lines, open_net = 0, open_moved = 0, carried = 0
            FROM settlements was WHERE s.merchant_id = $1 AND was.merchant_id = $1
            RETURNING s.payouts, was.closed + 1 AS first_line, s.lines AS last_line, was.open_net""",
            merchant_id,
        )  # fmt: skip
        # The lines of returned payouts are open too, so this payout includes them.
        number, amount = row["payouts"], row["open_net"]
        await session.fetchrow(
            "SELECT post_merchant_transfer($1, 'payout', $2, 'merchant_payable', 'payouts_in_transit', $3, 'USD', $4, NULL, NULL)",
            merchant_id, payout_id, amount, now,
        )  # fmt: skip
        await session.fetchrow(
            """INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id,
                cutoff, closed_at, arrival_date, events, try_at)
            VALUES ($1, $2, $3, 'created', $4, 'USD', $5, $6, $7, $8, $8, $9, 1, $8)""",
            merchant_id, payout_id, number, amount, row["first_line"], row["last_line"], account_id, now, business_days_after(day_at_bank(now), 1),
        )  # fmt: skip
        await session.fetchrow(
            "SELECT write_payout_event($1, $2, 1, 'payout.created', $3, NULL, $4)",
            merchant_id,
            payout_id,
            amount,
            now,
        )
    return payout_id


async def _account(
    context: Context, session: Any, merchant_id: UUID, details: BankDetails, now: datetime
) -> UUID:
    """Return the account in force if it has this number. Otherwise put an account with this number in force."""
    found = await session.fetchrow(
        """SELECT account_id, last4 FROM bank_accounts WHERE merchant_id = $1 AND effective_at <= $2
        ORDER BY effective_at DESC, created_at DESC LIMIT 1""",
        merchant_id, now,
    )  # fmt: skip
    if found is not None and found["last4"] == details.last4:
        return UUID(str(found["account_id"]))
    new = seal(context.vault, uuid4(), details)
    await session.fetchrow(
        """INSERT INTO bank_accounts (merchant_id, account_id, routing, account, last4, effective_at, announced_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $6, $6)""",
        merchant_id, new.account_id, new.routing, new.account, new.last4, now,
    )  # fmt: skip
    return new.account_id


async def payout_row(context: Context, payout_id: UUID) -> dict[str, Any]:
    """Return a payout's row."""
    (row,) = await context.pool.fetch("SELECT * FROM payouts WHERE payout_id = $1", payout_id)
    return dict(row)


async def event_types(context: Context, about: UUID) -> list[str]:
    """Return the types of the events about a payout or a bank account, in their order."""
    rows = await context.pool.fetch("SELECT type FROM events WHERE order_id = $1 ORDER BY sequence", about)
    return [row["type"] for row in rows]


async def postings(context: Context, payout_id: UUID) -> list[tuple[str, str, str, int]]:
    """Return a payout's rows in the ledger: posting, debit, credit, cents."""
    rows = await context.pool.fetch(
        "SELECT posting, debit, credit, amount FROM merchant_transfers WHERE cause = $1 ORDER BY number",
        payout_id,
    )
    return [(row["posting"], row["debit"], row["credit"], row["amount"]) for row in rows]


async def returned_lines(context: Context, payout_id: UUID) -> list[int]:
    """Return the cents of each settlement line that credits the payout back to the merchant."""
    rows = await context.pool.fetch(
        "SELECT net FROM settlement_lines WHERE cause = $1 AND type = 'payout_returned'", payout_id
    )
    return [row["net"] for row in rows]


async def bank_paid(context: Context, payout_id: UUID) -> list[int]:
    """Return the cents of each order for this payout in the sandbox bank's own book."""
    rows = await context.pool.fetch(
        "SELECT amount FROM bank_simulator.orders WHERE payout_id = $1", payout_id
    )
    return [row["amount"] for row in rows]
