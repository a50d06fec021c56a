"""The first bank account takes effect at once. A change takes effect after three days and can be replaced or canceled."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from cuota.core.payout.bank_account import CHANGE_DELAY, BankDetails
from cuota.core.sandbox import TEST_ACCOUNTS
from cuota.db.apart import LateMerchants
from cuota.db.payout import bank_accounts
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant, MerchantTerms, create_merchant
from cuota.flows.merchant.sandbox_account import give_test_accounts
from cuota.flows.merchant.seal_bank_account import bound_to
from cuota.flows.payout.change_bank_account import (
    cancel_change,
    change_bank_account,
    read_standing,
    resume_payouts,
)
from cuota.flows.payout.send_payouts import send_payouts
from cuota.work.payouts import settle_payouts
from support.db.locks import holder
from support.makers import Merchant
from support.own_service import Own
from support.payouts import event_types, make_payout, payout_row

LOCK = "SELECT FROM settlements WHERE merchant_id = $1 FOR UPDATE"
FIRST, SECOND, THIRD = (BankDetails("021000021", f"99887766{number}") for number in ("1111", "2222", "3333"))


def later(context: Context, by: timedelta) -> Context:
    now = context.now() + by
    return replace(context, now=lambda: now)


async def production_merchant(context: Context) -> UUID:
    """Make a merchant without the sandbox's test account."""
    settings = replace(context.settings, environment="production")
    terms = MerchantTerms(name=f"Bank {secrets.token_hex(6)}")
    return (await create_merchant(replace(context, settings=settings), terms)).merchant.merchant_id


async def test_the_sandbox_gives_a_new_merchant_the_test_account_that_pays_without_an_event(
    merchant: Merchant,
) -> None:
    context = merchant.service.context
    standing = await read_standing(context, merchant.merchant_id)
    assert standing.in_force is not None
    assert standing.in_force.last4 == TEST_ACCOUNTS[0].number[-4:]
    assert await event_types(context, standing.in_force.account_id) == []


async def test_production_gives_no_test_account(merchant: Merchant) -> None:
    context = merchant.service.context
    merchant_id = await production_merchant(context)
    assert (await read_standing(context, merchant_id)).in_force is None


async def test_no_bank_account_is_created_for_a_merchant_whose_name_is_taken(own: Own) -> None:
    before = await own.context.pool.fetch("SELECT count(*) AS n FROM bank_accounts")
    with pytest.raises(BadMerchant, match="already a merchant"):
        await create_merchant(own.context, MerchantTerms(name=own.merchant.name))
    assert await own.context.pool.fetch("SELECT count(*) AS n FROM bank_accounts") == before


async def test_the_start_of_the_sandbox_gives_existing_merchants_the_test_account_once(own: Own) -> None:
    merchant_id = await production_merchant(own.context)
    await give_test_accounts(own.context)
    await give_test_accounts(own.context)
    assert len(await bank_accounts.read_all(own.context.pool, merchant_id)) == 1
    assert len(await bank_accounts.read_all(own.context.pool, own.merchant.merchant_id)) == 1


async def test_the_first_account_takes_effect_at_once_and_sends_the_event(merchant: Merchant) -> None:
    context = merchant.service.context
    merchant_id = await production_merchant(context)
    effective_at = await change_bank_account(context, merchant_id, FIRST)
    assert effective_at <= context.now()
    standing = await read_standing(context, merchant_id)
    assert standing.in_force is not None
    assert standing.in_force.last4 == "1111"
    assert await event_types(context, standing.in_force.account_id) == ["bank_account.changed"]


async def test_a_change_takes_effect_after_three_days_and_sends_the_event_at_once(merchant: Merchant) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    before = context.now()
    effective_at = await change_bank_account(context, merchant_id, FIRST)
    assert before + CHANGE_DELAY <= effective_at <= context.now() + CHANGE_DELAY
    standing = await read_standing(context, merchant_id)
    assert standing.in_force is not None
    assert standing.pending is not None
    assert (standing.in_force.last4, standing.pending.last4) == ("6789", "1111")
    assert await event_types(context, standing.pending.account_id) == ["bank_account.changed"]
    after = await read_standing(later(context, CHANGE_DELAY), merchant_id)
    assert after.in_force is not None
    assert (after.in_force.last4, after.pending) == ("1111", None)
    assert [each.last4 for each in after.earlier] == ["6789"]


async def test_a_second_change_replaces_the_first_one_which_never_takes_effect(merchant: Merchant) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await change_bank_account(context, merchant_id, FIRST)
    first = (await read_standing(context, merchant_id)).pending
    again = later(context, timedelta(days=2))
    await change_bank_account(again, merchant_id, SECOND)
    assert first is not None
    assert await event_types(context, first.account_id) == ["bank_account.changed"] * 2
    shown = await read_standing(later(context, CHANGE_DELAY + timedelta(hours=1)), merchant_id)
    assert shown.in_force is not None
    assert shown.in_force.last4 == "6789"
    last = await read_standing(later(context, CHANGE_DELAY + timedelta(days=2, hours=1)), merchant_id)
    assert last.in_force is not None
    assert last.in_force.last4 == "2222"


async def test_of_several_changes_at_the_same_moment_one_is_pending(merchant: Merchant) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await asyncio.gather(
        *(change_bank_account(context, merchant_id, each) for each in (FIRST, SECOND, THIRD))
    )
    now = context.now()
    held = await bank_accounts.read_all(context.pool, merchant_id)
    assert len([each for each in held if each.effective_at is not None and each.effective_at > now]) == 1


async def test_a_canceled_change_never_takes_effect_and_there_is_then_nothing_to_cancel(
    merchant: Merchant,
) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await change_bank_account(context, merchant_id, FIRST)
    assert await cancel_change(context, merchant_id) == "1111"
    assert await cancel_change(context, merchant_id) is None
    standing = await read_standing(later(context, timedelta(days=99)), merchant_id)
    assert standing.in_force is not None
    assert (standing.in_force.last4, standing.pending) == ("6789", None)


async def test_the_account_in_force_cannot_be_canceled(merchant: Merchant) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await change_bank_account(context, merchant_id, FIRST)
    assert await cancel_change(later(context, CHANGE_DELAY), merchant_id) is None


async def test_the_numbers_are_stored_encrypted_and_can_be_decrypted_only_for_their_own_account(
    merchant: Merchant,
) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await change_bank_account(context, merchant_id, FIRST)
    rows = await context.pool.fetch("SELECT * FROM bank_accounts WHERE merchant_id = $1", merchant_id)
    (row,) = [each for each in rows if each["last4"] == "1111"]
    assert FIRST.account.encode() not in row["account"]
    bound = bound_to(row["account_id"])
    assert context.vault.decrypt(row["account"], bound) == FIRST.account
    assert context.vault.decrypt(row["routing"], bound) == FIRST.routing


async def paused(own: Own, merchant_id: UUID) -> datetime | None:
    return await bank_accounts.paused_since(own.context.pool, merchant_id)


async def test_paused_payouts_continue_when_the_new_account_takes_effect_and_not_before(
    own: Own,
) -> None:
    context, merchant_id = own.context, own.merchant.merchant_id
    await make_payout(context, merchant_id, behaviour="rejected")
    await send_payouts(context)
    assert await paused(own, merchant_id) is not None
    await change_bank_account(context, merchant_id, FIRST)
    assert await resume_payouts(later(context, CHANGE_DELAY - timedelta(minutes=1))) == 0
    assert await paused(own, merchant_id) is not None
    assert await resume_payouts(later(context, CHANGE_DELAY)) == 1
    assert await paused(own, merchant_id) is None
    assert await resume_payouts(later(context, CHANGE_DELAY)) == 0


async def test_payouts_stay_paused_if_the_change_is_canceled_and_continue_with_a_change_that_was_pending_before_the_pause(
    own: Own,
) -> None:
    context, merchant_id = own.context, own.merchant.merchant_id
    payout_id = await make_payout(context, merchant_id, behaviour="rejected")
    await change_bank_account(context, merchant_id, FIRST)
    await send_payouts(context)
    assert (await payout_row(context, payout_id))["status"] == "returned"
    await cancel_change(context, merchant_id)
    assert await resume_payouts(later(context, timedelta(days=9))) == 0
    await change_bank_account(context, merchant_id, SECOND)
    await make_payout(context, merchant_id, behaviour="rejected")
    await send_payouts(context)
    assert await resume_payouts(later(context, CHANGE_DELAY)) == 1


# The order in which the job handles the merchants is not defined, so each of them fails once.
@pytest.mark.parametrize("fails", [0, 1])
async def test_the_payouts_of_a_merchant_continue_although_those_of_another_cannot(
    own: Own, fails: int
) -> None:
    both = [own.merchant.merchant_id, own.auto_merchant.merchant_id]
    failing, other = both[fails], both[1 - fails]
    for merchant_id in both:
        await make_payout(own.context, merchant_id, behaviour="rejected")
        await change_bank_account(own.context, merchant_id, FIRST)
    await send_payouts(own.context)
    context = later(own.context, CHANGE_DELAY)
    # By a clock that stands still, the failure takes no time, so that the merchant is tried again in the next run.
    context.late["resumption of payouts"] = LateMerchants(lambda: 0.0)
    async with holder(own.where) as lock:
        await lock.run(LOCK, failing)
        assert await lock.until_done(asyncio.ensure_future(resume_payouts(context))) == 1
        assert await paused(own, other) is None
    assert await resume_payouts(context) == 1
    assert await paused(own, failing) is None


async def test_payouts_are_sent_although_no_paused_payout_can_continue(own: Own) -> None:
    payout_id = await make_payout(own.context, own.merchant.merchant_id)
    async with own.owner() as owner:
        # The job cannot ask which payouts are paused.
        await owner.execute("ALTER TABLE settlements RENAME COLUMN resume_at TO renamed")
    assert await settle_payouts(own.context) == 1
    assert (await payout_row(own.context, payout_id))["status"] == "sent"


async def test_the_database_refuses_last_digits_that_are_no_digits(own: Own) -> None:
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute("UPDATE bank_accounts SET last4 = '12'")
