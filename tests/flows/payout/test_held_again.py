"""A payout that was released can be held again until it is handed to the bank."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from cuota.db.payout import holds
from cuota.db.payout.holds import HoldReason
from cuota.flows.context import Context
from cuota.flows.payout.release_payout import release_payout
from cuota.flows.payout.send_payouts import send_payouts
from flows.payout.test_bank_files import FileBank, on_monday
from support.own_service import Own
from support.payouts import make_payout, payout_row


async def hold(context: Context, merchant_id: UUID, *, on: bool = True) -> int:
    return await holds.hold(context.pool, merchant_id, HoldReason.OPERATOR, context.now(), on=on)


async def released(own: Own, *, queued: bool = False) -> tuple[FileBank, UUID]:
    """Return a bank and a payout that was held and released, and whose payment waits for a file if `queued`."""
    await on_monday(own)
    bank, merchant_id = FileBank(own.context, "nacha"), own.merchant.merchant_id
    payout_id = await make_payout(bank.context, merchant_id)
    await hold(bank.context, merchant_id)
    await hold(bank.context, merchant_id, on=False)
    bank.at += timedelta(minutes=1)
    await release_payout(bank.context, merchant_id, payout_id)
    if queued:
        await send_payouts(bank.context)
    bank.at += timedelta(minutes=1)
    return bank, payout_id


async def test_a_released_payout_is_held_again_and_goes_after_another_release(own: Own) -> None:
    bank, payout_id = await released(own)
    merchant_id = own.merchant.merchant_id
    assert await holds.could_stop(bank.context.pool, merchant_id) == (1, 12_345)
    assert await hold(bank.context, merchant_id) == 1
    assert await send_payouts(bank.context) == 0
    row = await payout_row(own.context, payout_id)
    assert (row["held_at"], row["released_at"], row["released_arrival"]) == (bank.at, None, None)
    await release_payout(bank.context, merchant_id, payout_id)
    assert await send_payouts(bank.context) == 1


async def test_a_released_payment_that_waits_for_a_file_is_held_again_when_the_file_is_made(own: Own) -> None:
    bank, payout_id = await released(own, queued=True)
    await hold(bank.context, own.merchant.merchant_id)
    assert await bank.make() == ([], 1)
    assert (await payout_row(own.context, payout_id))["released_at"] is None
    await hold(bank.context, own.merchant.merchant_id, on=False)
    await release_payout(bank.context, own.merchant.merchant_id, payout_id)
    await send_payouts(bank.context)
    assert await bank.make() == ([1], 0)


async def test_a_payment_that_is_released_during_the_hold_goes_into_the_next_file(own: Own) -> None:
    await on_monday(own)
    bank, merchant_id = FileBank(own.context, "nacha"), own.merchant.merchant_id
    payout_id = await make_payout(bank.context, merchant_id)
    await hold(bank.context, merchant_id)
    bank.at += timedelta(minutes=1)
    await release_payout(bank.context, merchant_id, payout_id)
    await send_payouts(bank.context)
    assert await bank.make() == ([1], 0)


async def test_a_payout_that_the_bank_was_asked_about_cannot_be_held_again(own: Own) -> None:
    bank, _ = await released(own, queued=True)
    assert await bank.make() == ([1], 0)
    assert await hold(bank.context, own.merchant.merchant_id) == 0
    await send_payouts(bank.context)
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError, match="cannot change how it was held"):
            await owner.execute("UPDATE payouts SET released_at = NULL, released_arrival = NULL")
