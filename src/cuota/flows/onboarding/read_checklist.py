"""Reads a merchant's onboarding, and decrypts it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.onboarding.checklist import Checklist, OnboardingFacts, checklist
from cuota.core.onboarding.document import DocumentKind, MerchantDocument
from cuota.core.onboarding.screening import NEVER, ScreenedName, Screening, subjects_of
from cuota.core.payout.bank_account import BankAccount
from cuota.db.onboarding import item_decisions, merchant_documents, merchant_owners, onboardings, screenings
from cuota.db.onboarding.merchant_documents import SealedDocument
from cuota.db.onboarding.onboardings import StoredOnboarding
from cuota.db.payout import bank_accounts
from cuota.db.session import Session
from cuota.db.vault import Vault
from cuota.flows.context import Context
from cuota.flows.onboarding.entered_again import rejected_before
from cuota.flows.onboarding.sealed_details import names_hash, open_business, open_owner, subject_hash


@dataclass(frozen=True, slots=True)
class OpenedOnboarding:
    """The facts, the checklist made from them, and the names to screen."""

    facts: OnboardingFacts
    checklist: Checklist
    subjects: tuple[ScreenedName, ...]


async def read_checklist(
    context: Context, merchant_id: UUID, session: Session | None = None
) -> OpenedOnboarding:
    """Return a merchant's current onboarding. With `session`, read it in that session's transaction."""
    asked, vault = session or context.pool, context.vault
    stored = await onboardings.read(asked, merchant_id)
    sealed = stored.business if stored else None
    business = open_business(vault, merchant_id, sealed) if sealed else None
    owners = [open_owner(vault, each) for each in await merchant_owners.read_all(asked, merchant_id)]
    documents = await merchant_documents.read_all(asked, merchant_id)
    subjects = subjects_of(business, owners)
    account = _last(await bank_accounts.read_all(asked, merchant_id))
    facts = OnboardingFacts(
        business,
        stored.version if stored else 0,
        owners,
        account,
        [_document(vault, each) for each in documents],
        names_hash(vault, subjects),
        await _screening(context, asked, merchant_id, stored, subjects),
        await item_decisions.read_last(asked, merchant_id),
        await rejected_before(asked, vault, merchant_id, account),
    )
    return OpenedOnboarding(facts, checklist(facts), tuple(subjects))


def _last(accounts: list[BankAccount]) -> BankAccount | None:
    """Return the account that was entered last, without canceled changes."""
    return next((each for each in reversed(accounts) if each.effective_at is not None), None)


def _document(vault: Vault, sealed: SealedDocument) -> MerchantDocument:
    name = vault.decrypt(sealed.name, f"merchant-document-name:{sealed.document_id}")
    kind = DocumentKind(sealed.kind)
    return MerchantDocument(
        sealed.document_id, kind, name, sealed.media_type, sealed.size, sealed.sender, sealed.sent_at
    )


async def _screening(
    context: Context,
    session: Session,
    merchant_id: UUID,
    stored: StoredOnboarding | None,
    subjects: list[ScreenedName],
) -> Screening:
    if stored is None:
        return NEVER
    hashes = [subject_hash(context.vault, each) for each in subjects]
    found = await screenings.findings(session, merchant_id, hashes)
    return Screening(
        stored.names, stored.rail, stored.screened_at, stored.screen_at, stored.problem, tuple(found)
    )
