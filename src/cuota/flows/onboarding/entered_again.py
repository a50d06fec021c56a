"""Finds out whether the operator has rejected a bank account with the same numbers before."""

from __future__ import annotations

from uuid import UUID

from cuota.core.onboarding.checklist import ItemDecision
from cuota.core.payout.bank_account import BankAccount
from cuota.db.onboarding import item_decisions
from cuota.db.payout import bank_accounts
from cuota.db.session import Session
from cuota.db.vault import Vault
from cuota.flows.merchant.seal_bank_account import numbers_of


async def rejected_before(
    session: Session, vault: Vault, merchant_id: UUID, account: BankAccount | None
) -> ItemDecision | None:
    """Return the rejection of an earlier account with the same numbers as `account`, or None.

    The last decision about these numbers counts, because the operator may accept them after a rejection.
    """
    if account is None:
        return None
    decided = [
        each
        for each in await item_decisions.read_of_accounts(session, merchant_id)
        if each.about != str(account.account_id)
    ]
    if all(each.accepted for each in decided):
        return None
    sealed = {str(key): each for key, each in (await bank_accounts.read_sealed(session, merchant_id)).items()}
    numbers = numbers_of(vault, sealed[str(account.account_id)])
    same = [
        each for each in decided if each.about in sealed and numbers_of(vault, sealed[each.about]) == numbers
    ]
    return same[-1] if same and not same[-1].accepted else None
