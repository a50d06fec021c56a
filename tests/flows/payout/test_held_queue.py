"""`cuota bank make` takes the payments of a held merchant out of the queue while a worker of another bank runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.sandbox import TEST_ROUTING
from cuota.db.payout import sending
from cuota.flows.context import Context
from cuota.flows.payout.bank_files import make_files
from cuota.flows.payout.release_payout import release_payout
from cuota.flows.payout.send_payouts import send_payouts
from cuota.rails.bank.protocol import BankOrder
from cuota.rails.unavailable import RailUnavailable
from flows.payout.test_bank_files import CENTS, DAY, FileBank, on_monday
from flows.payout.test_change_of_bank import OtherBank
from flows.payout.test_held_again import hold
from support.db.locks import holder
from support.own_service import Own
from support.payouts import make_payout, payout_row
from support.rails.bank import with_bank

CLAIM = "UPDATE payouts SET try_at = $2, tries = tries + 1 WHERE payout_id = $1"


async def _held_in_the_queue(own: Own) -> tuple[FileBank, UUID]:
    """Return the bank and a payout whose payment waits for a file, and whose merchant is held by now."""
    await on_monday(own)
    bank = FileBank(own.context, "nacha")
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(bank.context)
    bank.at += timedelta(minutes=1)
    await hold(bank.context, own.merchant.merchant_id)
    return bank, payout_id


async def _release(bank: FileBank, context: Context, merchant_id: UUID, payout_id: UUID) -> None:
    bank.at += timedelta(minutes=1)
    await hold(context, merchant_id, on=False)
    await release_payout(context, merchant_id, payout_id)
    await send_payouts(context)


async def test_a_payment_that_has_left_the_queue_of_a_held_merchant_is_sent_by_no_other_bank(
    own: Own,
) -> None:
    bank, payout_id = await _held_in_the_queue(own)
    # The first step of the command. A worker runs before the second one, which holds the payout.
    assert await bank.rail.books.withdraw([payout_id]) == [payout_id]
    new = OtherBank()
    bank.at += timedelta(hours=2)
    context = with_bank(bank.context, new, bank.rail)
    assert await send_payouts(context) == 1
    row = await payout_row(own.context, payout_id)
    assert (new.amounts, row["status"], row["held_at"], row["try_at"]) == ({}, "created", bank.at, None)
    await _release(bank, context, own.merchant.merchant_id, payout_id)
    assert new.amounts == {payout_id: CENTS}


async def test_a_payout_that_a_worker_claims_meanwhile_is_not_held_because_a_bank_may_be_asked(
    own: Own,
) -> None:
    bank, payout_id = await _held_in_the_queue(own)
    async with holder(own.where) as other:
        await other.run(CLAIM, payout_id, bank.at + sending.LEASE)
        making = asyncio.ensure_future(make_files(bank.context, bank.rail, DAY))
        await other.until_waits(making)
    assert (await making).stopped == 1
    row = await payout_row(own.context, payout_id)
    assert (row["held_at"], row["tries"], row["bank_rail"]) == (None, 2, "files")


async def test_a_payment_that_was_stopped_is_sent_by_the_new_bank_after_its_release(own: Own) -> None:
    bank, payout_id = await _held_in_the_queue(own)
    new = OtherBank()
    assert await bank.make() == ([], 1)
    await _release(bank, with_bank(bank.context, new, bank.rail), own.merchant.merchant_id, payout_id)
    assert new.amounts == {payout_id: CENTS}


async def test_a_payment_that_an_old_worker_queued_again_is_not_sent_by_the_new_bank_too(own: Own) -> None:
    bank, payout_id = await _held_in_the_queue(own)
    merchant_id = own.merchant.merchant_id
    order = BankOrder(payout_id, merchant_id, "Shop", 1, CENTS, "USD", TEST_ROUTING, "123456789", DAY)
    assert await bank.make() == ([], 1)
    # The worker had claimed the payout before, and no longer found the payment.
    with pytest.raises(RailUnavailable, match="waits for the next bank file"):
        await bank.rail.send(order)
    new = OtherBank()
    await _release(bank, with_bank(bank.context, new, bank.rail), merchant_id, payout_id)
    assert new.amounts == {}
    assert await bank.make() == ([1], 0)
