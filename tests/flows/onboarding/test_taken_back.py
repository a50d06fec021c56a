"""A merchant takes a change of its onboarding back: what the operator accepted before counts again, and what it rejected does not."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import Item, ItemState
from cuota.core.onboarding.document import DocumentKind
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.onboarding import onboardings
from cuota.db.payout import holds
from cuota.flows.context import Context
from cuota.flows.onboarding.keep_documents import add_documents, remove_document
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from cuota.flows.payout.change_bank_account import cancel_change, change_bank_account
from support.onboarding import (
    NOTE,
    THEIRS,
    approve,
    decide,
    fill,
    new_merchant,
    requiring_approval,
    state_of,
    stored,
)
from support.own_service import Own


@pytest.fixture
def context(own: Own) -> Context:
    """A service whose settings require an approval."""
    return requiring_approval(own.context)


@pytest.fixture
async def new(context: Context) -> UUID:
    """A merchant that was created while an approval is required."""
    return await new_merchant(context)


async def test_a_merchant_that_takes_a_change_back_is_approved_when_all_the_rest_is_accepted(
    context: Context, new: UUID
) -> None:
    await fill(context, new)
    await screen_merchant(context, new)
    await decide(context, new, Item.DOCUMENTS)
    accepted = {each.document_id for each in (await read_checklist(context, new)).facts.documents}
    await add_documents(context, new, THEIRS, DocumentKind.OTHER, [NOTE])
    for item in (Item.BUSINESS, Item.OWNERS, Item.BANK):
        await decide(context, new, item)
    assert (await stored(context, new)).onboarding is Onboarding.OPEN
    for each in (await read_checklist(context, new)).facts.documents:
        if each.document_id not in accepted:
            await remove_document(context, new, THEIRS, each.document_id)
    # Nothing is left to check, so nobody would look at this merchant.
    assert (await onboardings.count_to_check(context.pool))[0] == 0
    assert (await stored(context, new)).onboarding is Onboarding.APPROVED
    assert (await holds.read(context.pool, new)).unapproved_since is None
    (row,) = await context.pool.fetch(
        "SELECT actor, role FROM operator_log WHERE about = $1 AND action = 'merchant.approve'", new
    )
    assert (row["actor"], row["role"]) == ("the service, onboarding", "job")


async def test_a_rejected_bank_account_is_not_accepted_by_taking_the_change_back(
    context: Context, new: UUID
) -> None:
    await approve(context, new)
    await change_bank_account(context, new, read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[1].number))
    await decide(context, new, Item.BANK, accepted=False)
    assert await cancel_change(context, new) is not None
    assert await state_of(context, new, Item.BANK) is ItemState.TO_CHECK
    assert (await stored(context, new)).onboarding is Onboarding.OPEN
