"""No payout goes to a bank account that the operator has rejected, or that was replaced before it was ever accepted."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import Item, ItemState
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.payout.holds import Release
from cuota.db.verify.recalculate import verify
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.merchant.suspend_merchant import suspend_merchant
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.flows.payout.release_payout import release_payout
from cuota.flows.payout.send_payouts import send_payouts
from support.db.settled import PAYOUTS, closed, cutoff_of, rows, settled
from support.onboarding import approve, decide, fill, new_merchant, requiring_approval, state_of, stored
from support.own_service import Own
from support.payouts import bank_paid, event_types, make_payout, payout_row, returned_lines

OTHER = read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[1].number)


@pytest.fixture
def context(own: Own) -> Context:
    """A service whose settings require an approval."""
    return requiring_approval(own.context)


@pytest.fixture
async def new(context: Context) -> UUID:
    """A merchant that must be approved. The sandbox has given it a bank account."""
    return await new_merchant(context)


async def held(context: Context, payout_id: UUID) -> bool:
    """Whether a payout waits for a release."""
    row = await payout_row(context, payout_id)
    return row["held_at"] is not None and row["released_at"] is None


async def test_a_payout_to_a_rejected_account_waits_although_another_account_is_accepted_already(
    own: Own, context: Context, new: UUID
) -> None:
    await approve(context, new)
    await decide(context, new, Item.BANK, accepted=False, reason="it belongs to somebody else")
    await change_bank_account(context, new, OTHER)
    await decide(context, new, Item.BANK)
    # The accepted account takes effect in three days. Until then the rejected one is in force.
    assert (await stored(context, new)).onboarding is Onboarding.APPROVED
    payout_id = await make_payout(context, new)
    assert await held(context, payout_id)
    with pytest.raises(BadMerchant, match="was not accepted"):
        await release_payout(context, new, payout_id)
    assert await send_payouts(context) == 0
    async with own.service.clock.moved(days=4):
        assert await release_payout(context, new, payout_id) is Release.GIVEN_BACK
        assert await send_payouts(context) == 0
        assert await bank_paid(context, payout_id) == []


async def test_a_payout_to_an_account_that_was_replaced_before_it_was_accepted_waits(
    context: Context, new: UUID
) -> None:
    await change_bank_account(context, new, OTHER)
    await approve(context, new)
    assert await held(context, await make_payout(context, new))


async def test_a_release_pays_no_account_that_was_rejected_and_replaced_while_the_payout_was_held(
    own: Own, context: Context, new: UUID
) -> None:
    await approve(context, new)
    await decide(context, new, Item.BANK, accepted=False, reason="it belongs to somebody else")
    payout_id = await make_payout(context, new)
    await change_bank_account(context, new, OTHER)
    async with own.service.clock.moved(days=4):
        await decide(context, new, Item.BANK)
        assert await release_payout(context, new, payout_id) is Release.GIVEN_BACK
        with pytest.raises(BadMerchant, match="not held any more"):
            await release_payout(context, new, payout_id)
        row = await payout_row(context, payout_id)
        assert (row["status"], row["try_at"]) == ("returned", None)
        assert "account changed" in row["return_reason"]
        assert await event_types(context, payout_id) == ["payout.created", "payout.returned"]
        assert await returned_lines(context, payout_id) == [12_345]
        # The next payout has the amount, and is not paused: it goes to the account that was accepted.
        (paused,) = await context.pool.fetch(
            "SELECT paused_since FROM settlements WHERE merchant_id = $1", new
        )
        assert paused["paused_since"] is None
        later = await make_payout(context, new, 1, behaviour=TEST_ACCOUNTS[1].behaviour)
        row = await payout_row(context, later)
        assert (row["amount"], row["held_at"]) == (12_346, None)


async def test_a_payout_that_the_operator_held_goes_to_the_account_that_is_in_force_at_its_release(
    own: Own, context: Context
) -> None:
    merchant_id = own.merchant.merchant_id
    await suspend_merchant(context, str(merchant_id), hold=True)
    payout_id = await make_payout(context, merchant_id)
    await change_bank_account(context, merchant_id, OTHER)
    async with own.service.clock.moved(days=4):
        assert await release_payout(context, merchant_id, payout_id) is Release.GIVEN_BACK
        assert await bank_paid(context, payout_id) == []


async def test_the_books_agree_after_an_amount_went_back_to_the_balance(own: Own, context: Context) -> None:
    merchant_id = own.merchant.merchant_id
    order = await own.merchant.approved("1000.00")
    assert (await own.merchant.move(order, "capture", "100.00")).status_code == 200
    await settled(context, merchant_id)
    cutoff = await cutoff_of(own, merchant_id)
    assert cutoff is not None
    await suspend_merchant(context, str(merchant_id), hold=True)
    async with own.service.clock.moved(seconds=(cutoff - context.now()).total_seconds() + 1):
        assert await closed(context, merchant_id) == 1
        (payout,) = await rows(own, PAYOUTS, merchant_id)
        await change_bank_account(context, merchant_id, OTHER)
        async with own.service.clock.moved(days=4):
            assert await release_payout(context, merchant_id, payout["payout_id"]) is Release.GIVEN_BACK
            assert (await verify(context.pool)).disagreements == []


async def test_a_change_after_the_approval_holds_nothing_while_it_is_to_be_checked(
    own: Own, context: Context, new: UUID
) -> None:
    await approve(context, new)
    await change_bank_account(context, new, OTHER)
    assert not await held(context, await make_payout(context, new))
    async with own.service.clock.moved(days=4):
        assert await state_of(context, new, Item.BANK) is ItemState.TO_CHECK
        assert not await held(context, await make_payout(context, new, behaviour=TEST_ACCOUNTS[1].behaviour))


async def test_a_rejection_holds_nothing_of_a_merchant_that_needs_no_approval(
    own: Own, context: Context
) -> None:
    merchant_id = own.merchant.merchant_id
    await fill(context, merchant_id)
    await decide(context, merchant_id, Item.BANK, accepted=False)
    assert not await held(context, await make_payout(context, merchant_id))
