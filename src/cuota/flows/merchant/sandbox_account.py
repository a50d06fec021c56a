"""The bank account that the sandbox gives to each merchant."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.payout.bank_account import CHANGE_DELAY, BankDetails
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.payout import bank_accounts
from cuota.db.session import Session
from cuota.db.vault import Vault
from cuota.flows.context import Context
from cuota.flows.merchant.seal_bank_account import seal


async def give_test_account(
    session: Session, vault: Vault, merchant_id: UUID, account_id: UUID, now: datetime
) -> None:
    """Give a merchant of the sandbox the test account that pays, if it has none. The merchant gets no event about it."""
    details = BankDetails(TEST_ROUTING, TEST_ACCOUNTS[0].number)
    sealed = seal(vault, account_id, details)
    await bank_accounts.add(session, merchant_id, sealed, now, CHANGE_DELAY, told=False)


async def give_test_accounts(context: Context) -> None:
    """Give the test account to sandbox merchants that an earlier release created. Runs at each start."""
    if not context.settings.sandbox:
        return
    for merchant_id in await bank_accounts.merchants_without(context.pool):
        await give_test_account(context.pool, context.vault, merchant_id, context.new_id(), context.now())
