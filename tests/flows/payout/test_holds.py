"""Payouts that are held: closed as always, sent only after a release, also in the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.calendar import next_business_day
from cuota.db.merchant import merchants
from cuota.db.payout import holds, operator_list
from cuota.db.payout.holds import HoldReason, Release
from cuota.db.verify.recalculate import verify
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant, MerchantTerms, create_merchant
from cuota.flows.merchant.suspend_merchant import resume_merchant, suspend_merchant
from cuota.flows.payout.days import days_now
from cuota.flows.payout.release_payout import release_payout
from cuota.flows.payout.send_payouts import send_payouts
from support.db.locks import holder
from support.db.settled import PAYOUTS, closed, cutoff_of, rows, settled
from support.onboarding import approve
from support.own_service import Own
from support.payouts import bank_paid, event_types, make_payout, payout_row


async def sent(context: Context) -> int:
    """Send what is due, as the job does."""
    return await send_payouts(context)


@pytest.fixture
def context(own: Own) -> Context:
    return own.context


@pytest.fixture
def merchant_id(own: Own) -> UUID:
    return own.merchant.merchant_id


async def hold(context: Context, merchant_id: UUID, *, on: bool = True) -> int:
    return await holds.hold(context.pool, merchant_id, HoldReason.OPERATOR, context.now(), on=on)


async def test_a_payout_of_an_unapproved_merchant_waits_until_it_is_approved_and_released(own: Own) -> None:
    context = replace(own.context, settings=replace(own.context.settings, onboarding="required"))
    merchant_id = (
        await create_merchant(context, MerchantTerms(name=f"Shop {uuid4().hex[:8]}"))
    ).merchant.merchant_id
    payout_id = await make_payout(context, merchant_id)
    row = await payout_row(context, payout_id)
    assert (row["status"], row["held_at"], row["try_at"]) == ("created", row["closed_at"], None)
    assert await sent(context) == 0
    with pytest.raises(BadMerchant, match="not approved"):
        await release_payout(context, merchant_id, payout_id)
    await approve(context, merchant_id)
    assert await sent(context) == 0
    await release_payout(context, merchant_id, payout_id)
    assert await sent(context) == 1
    assert (await payout_row(context, payout_id))["status"] == "sent"
    assert await bank_paid(context, payout_id) == [12_345]
    later = await make_payout(context, merchant_id)
    assert (await payout_row(context, later))["held_at"] is None


async def test_a_hold_stops_what_the_bank_was_not_asked_about_and_nothing_else(
    context: Context, merchant_id: UUID
) -> None:
    gone = await make_payout(context, merchant_id)
    await sent(context)
    waiting = await make_payout(context, merchant_id)
    assert await holds.could_stop(context.pool, merchant_id) == (1, 12_345)
    assert await hold(context, merchant_id) == 1
    assert await hold(context, merchant_id) == 0
    assert (await payout_row(context, gone))["status"] == "sent"
    assert (await payout_row(context, waiting))["held_at"] is not None
    assert await operator_list.count_held(context.pool) == (1, 12_345)


async def test_after_the_hold_later_payouts_go_and_the_held_one_still_waits(
    context: Context, merchant_id: UUID
) -> None:
    await hold(context, merchant_id)
    held = await make_payout(context, merchant_id)
    await hold(context, merchant_id, on=False)
    free = await make_payout(context, merchant_id)
    assert await sent(context) == 1
    assert (await payout_row(context, free))["status"] == "sent"
    assert (await payout_row(context, held))["status"] == "created"


async def test_one_payout_may_be_released_while_the_operators_hold_goes_on(
    context: Context, merchant_id: UUID
) -> None:
    await hold(context, merchant_id)
    first, second = [await make_payout(context, merchant_id) for _ in range(2)]
    await release_payout(context, merchant_id, first)
    assert await sent(context) == 1
    assert (await payout_row(context, second))["status"] == "created"


async def test_of_many_clicks_one_releases_and_the_bank_pays_once(
    context: Context, merchant_id: UUID
) -> None:
    await hold(context, merchant_id)
    payout_id = await make_payout(context, merchant_id)
    results = await asyncio.gather(
        *(release_payout(context, merchant_id, payout_id) for _ in range(5)), return_exceptions=True
    )
    assert results.count(Release.RELEASED) == 1
    assert all("not held any more" in str(each) for each in results if each is not Release.RELEASED)
    await asyncio.gather(*(sent(context) for _ in range(3)))
    assert await bank_paid(context, payout_id) == [12_345]


async def test_another_merchants_payout_is_not_released(
    own: Own, context: Context, merchant_id: UUID
) -> None:
    await hold(context, merchant_id)
    payout_id = await make_payout(context, merchant_id)
    with pytest.raises(BadMerchant):
        await release_payout(context, own.auto_merchant.merchant_id, payout_id)
    assert (await payout_row(context, payout_id))["released_at"] is None


async def test_the_arrival_is_counted_from_the_release_and_no_event_changes(
    own: Own, context: Context, merchant_id: UUID
) -> None:
    await hold(context, merchant_id)
    payout_id = await make_payout(context, merchant_id)
    before = (await payout_row(context, payout_id))["arrival_date"]
    async with own.service.clock.moved(days=30):
        await release_payout(context, merchant_id, payout_id)
        expected = next_business_day(day_at_bank(context.now()))
        row = await payout_row(context, payout_id)
        assert (row["arrival_date"], row["released_arrival"]) == (before, expected)
        await sent(context)
        listed = await operator_list.read_one(context.pool, merchant_id, payout_id)
        assert listed is not None
        assert listed.arrival_date == expected
        # So nobody is told that the bank is late.
        assert await operator_list.count_troubled(context.pool, days_now(context)) == 0
    assert await event_types(context, payout_id) == ["payout.created", "payout.sent"]


async def test_a_batch_of_a_held_merchant_closes_as_always_and_the_books_agree_until_it_is_paid(
    own: Own, context: Context, merchant_id: UUID
) -> None:
    order = await own.merchant.approved("1000.00")
    assert (await own.merchant.move(order, "capture", "100.00")).status_code == 200
    await settled(context, merchant_id)
    cutoff = await cutoff_of(own, merchant_id)
    assert cutoff is not None
    await hold(context, merchant_id)
    async with own.service.clock.moved(seconds=(cutoff - context.now()).total_seconds() + 1):
        assert await closed(context, merchant_id) == 1
        (payout,) = await rows(own, PAYOUTS, merchant_id)
        assert (payout["status"], payout["amount"], payout["try_at"]) == ("created", 10_000, None)
        assert (await verify(context.pool)).disagreements == []
        assert await sent(context) == 0
        await release_payout(context, merchant_id, payout["payout_id"])
        await sent(context)
        async with own.service.clock.moved(days=5):
            await sent(context)
            (payout,) = await rows(own, PAYOUTS, merchant_id)
            assert payout["status"] == "paid"
            assert (await verify(context.pool)).disagreements == []


@pytest.mark.parametrize(
    "change",
    [
        "try_at = now()",
        "status = 'sent'",
        "held_at = NULL, try_at = now()",
        "held_at = now() + interval '1 day'",
    ],
)
async def test_the_database_sends_no_payout_that_is_held(
    own: Own, context: Context, merchant_id: UUID, change: str
) -> None:
    await hold(context, merchant_id)
    payout_id = await make_payout(context, merchant_id)
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute(f"UPDATE payouts SET {change} WHERE payout_id = $1", payout_id)


async def test_the_database_releases_nothing_before_the_approval_and_nothing_twice(
    own: Own, context: Context, merchant_id: UUID
) -> None:
    await holds.hold(context.pool, merchant_id, HoldReason.UNAPPROVED, context.now(), on=True)
    payout_id = await make_payout(context, merchant_id)
    release = "UPDATE payouts SET released_at = now() WHERE payout_id = $1"
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError, match="not approved"):
            await owner.execute(release, payout_id)
        await holds.hold(context.pool, merchant_id, HoldReason.UNAPPROVED, context.now(), on=False)
        await owner.execute(release, payout_id)
        for again in (release, "UPDATE payouts SET released_at = NULL WHERE payout_id = $1"):
            with pytest.raises(asyncpg.CheckViolationError, match="cannot change how it was held"):
                await owner.execute(again, payout_id)


async def test_a_payout_that_was_never_held_cannot_be_released(
    own: Own, context: Context, merchant_id: UUID
) -> None:
    payout_id = await make_payout(context, merchant_id)
    with pytest.raises(BadMerchant, match="not held"):
        await release_payout(context, merchant_id, payout_id)
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute("UPDATE payouts SET released_at = now() WHERE payout_id = $1", payout_id)


async def test_a_payout_that_closes_while_a_hold_begins_is_held_or_was_there_before(
    context: Context, merchant_id: UUID
) -> None:
    """Both take the lock of the merchant's row in settlements, so no payout slips through between the two."""
    for _ in range(10):
        payout_id, _ = await asyncio.gather(make_payout(context, merchant_id), hold(context, merchant_id))
        assert (await payout_row(context, payout_id))["held_at"] is not None
        await hold(context, merchant_id, on=False)


async def test_suspending_with_a_hold_stops_payouts_and_resuming_lets_later_ones_go(
    context: Context, merchant_id: UUID
) -> None:
    waiting = await make_payout(context, merchant_id)
    done = await suspend_merchant(context, str(merchant_id), hold=True)
    assert (done.stopped, done.merchant.merchant_id) == (1, merchant_id)
    closed_later = await make_payout(context, merchant_id, at=context.now() + timedelta(seconds=1))
    assert await sent(context) == 0
    await resume_merchant(context, str(merchant_id))
    assert await sent(context) == 0
    for payout_id in (waiting, closed_later):
        await release_payout(context, merchant_id, payout_id)
    assert await sent(context) == 2


async def test_suspending_without_a_hold_leaves_payouts_alone(context: Context, merchant_id: UUID) -> None:
    await make_payout(context, merchant_id)
    await suspend_merchant(context, str(merchant_id), hold=False)
    assert await sent(context) == 1
    # The hold can be added, once.
    await make_payout(context, merchant_id)
    assert (await suspend_merchant(context, str(merchant_id), hold=True)).stopped == 1
    for with_hold in (True, False):
        with pytest.raises(BadMerchant, match="suspended already"):
            await suspend_merchant(context, str(merchant_id), hold=with_hold)


async def test_who_is_not_suspended_is_not_resumed(context: Context, merchant_id: UUID) -> None:
    with pytest.raises(BadMerchant, match="is not suspended"):
        await resume_merchant(context, str(merchant_id))


async def test_a_merchant_that_is_not_suspended_never_keeps_a_hold_whoever_was_faster(
    own: Own, context: Context, merchant_id: UUID
) -> None:
    """A person suspends with a hold while another one resumes."""
    await suspend_merchant(context, str(merchant_id), hold=False)
    name = str(merchant_id)
    async with holder(own.where) as other:
        await other.run("SELECT 1 FROM merchants WHERE merchant_id = $1 FOR UPDATE", merchant_id)
        suspension = asyncio.ensure_future(suspend_merchant(context, name, hold=True))
        await other.until_waits(suspension)
        resumption = asyncio.ensure_future(resume_merchant(context, name))
        await other.until_waits(resumption, 2)
    await asyncio.gather(resumption, suspension)
    found = await merchants.read(context.pool, merchant_id)
    assert found is not None
    held = (await holds.read(context.pool, merchant_id)).held_since is not None
    assert held == found.suspended
