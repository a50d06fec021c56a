"""The operator sees that a bank account was rejected before, when the merchant enters the same numbers again."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.onboarding.checklist import Item, ItemState
from cuota.core.payout.bank_account import BankDetails, read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.flows.context import Context
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.payout.change_bank_account import change_bank_account
from support.onboarding import approve, decide, new_merchant, requiring_approval, state_of
from support.own_service import Own

REASON = "it belongs to somebody else"
REJECTED, OTHER = (read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[number].number) for number in (1, 2))


@pytest.fixture
def context(own: Own) -> Context:
    """A service whose settings require an approval."""
    return requiring_approval(own.context)


@pytest.fixture
async def new(context: Context) -> UUID:
    """A merchant whose account with the numbers REJECTED was rejected."""
    merchant_id = await new_merchant(context)
    await approve(context, merchant_id)
    await change_bank_account(context, merchant_id, REJECTED)
    await decide(context, merchant_id, Item.BANK, accepted=False, reason=REASON)
    return merchant_id


async def said(context: Context, merchant_id: UUID) -> str | None:
    """Return the reason of the earlier rejection, as the operator sees it."""
    found = (await read_checklist(context, merchant_id)).facts.rejected_before
    return None if found is None else found.reason


@pytest.mark.parametrize("between", [(), (OTHER,)], ids=["at once", "after another account"])
async def test_the_same_numbers_are_to_check_again_with_the_reason_of_the_rejection(
    context: Context, new: UUID, between: tuple[BankDetails, ...]
) -> None:
    for each in (*between, REJECTED):
        await change_bank_account(context, new, each)
    assert await state_of(context, new, Item.BANK) is ItemState.TO_CHECK
    assert await said(context, new) == REASON


async def test_other_numbers_are_new(context: Context, new: UUID) -> None:
    await change_bank_account(context, new, OTHER)
    assert await said(context, new) is None


async def test_numbers_that_were_accepted_after_their_rejection_are_not_shown_as_rejected(
    context: Context, new: UUID
) -> None:
    await decide(context, new, Item.BANK, reason="the bank has confirmed it")
    await change_bank_account(context, new, REJECTED)
    assert await said(context, new) is None
