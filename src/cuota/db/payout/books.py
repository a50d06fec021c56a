"""The trial balance: the balance of every ledger account at a time, over all merchants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from cuota.core.ledger import Account
from cuota.db.pool import Pool

_SIDES = """SELECT account, currency, sum(debit) AS debits, sum(credit) AS credits FROM (
    SELECT debit AS account, currency, amount AS debit, 0 AS credit FROM {table} WHERE created_at < $1
    UNION ALL SELECT credit, currency, 0, amount FROM {table} WHERE created_at < $1
) sides GROUP BY account, currency"""
_BALANCES = _SIDES.format(table="transfers")
_MERCHANT_BALANCES = _SIDES.format(table="merchant_transfers")


@dataclass(frozen=True, slots=True)
class AccountBalance:
    """The sums of one account in one currency, in cents."""

    account: Account
    currency: str
    debits: int
    credits: int

    @property
    def balance(self) -> int:
        """Return the debits minus the credits."""
        return self.debits - self.credits


async def balances(pool: Pool, before: datetime) -> list[AccountBalance]:
    """Return every account's sums of all rows of the ledger that were written before a time."""
    debits, credits_ = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    async with pool.session() as session:
        # This statement needs no timeout: it reads the whole ledger, and nothing waits for it.
        await session.execute("SET statement_timeout = 0")
        try:
            rows = [
                *await session.fetch(_BALANCES, before),
                *await session.fetch(_MERCHANT_BALANCES, before),
            ]
        finally:
            await session.execute("RESET statement_timeout")
    for row in rows:
        key = (row["currency"], row["account"])
        debits[key] += int(row["debits"])
        credits_[key] += int(row["credits"])
    currencies = sorted({currency for currency, _ in debits})
    return [
        AccountBalance(account, currency, debits[currency, account], credits_[currency, account])
        for currency in currencies
        for account in Account
    ]
