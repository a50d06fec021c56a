"""Encrypts the numbers of a merchant's bank account."""

from __future__ import annotations

from uuid import UUID

from cuota.core.payout.bank_account import BankDetails
from cuota.db.payout.bank_accounts import SealedAccount
from cuota.db.vault import Vault


def seal(vault: Vault, account_id: UUID, details: BankDetails) -> SealedAccount:
    """Encrypt the numbers of an account."""
    bound = bound_to(account_id)
    return SealedAccount(
        account_id,
        vault.encrypt(details.routing, bound),
        vault.encrypt(details.account, bound),
        details.last4,
    )


def numbers_of(vault: Vault, sealed: SealedAccount) -> BankDetails:
    """Decrypt the numbers of an account."""
    bound = bound_to(sealed.account_id)
    return BankDetails(vault.decrypt(sealed.routing, bound), vault.decrypt(sealed.account, bound))


def bound_to(account_id: UUID) -> str:
    """Return what the encrypted numbers of an account are bound to."""
    return f"bank-account:{account_id}"
