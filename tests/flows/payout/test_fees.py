"""A merchant pays a fee for each capture, by its terms. The fee is posted with the capture, and returned with the
refund."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import asyncpg
import pytest

from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.payout.fee import capture_fee
from cuota.core.payout.terms import RefundFee, SettlementTerms
from cuota.db.payout import terms as versions
from cuota.db.verify.recalculate import verify
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.order.capture_order import capture_order
from cuota.flows.payout.change_terms import TermsChange, change_terms
from support.own_service import Own

if TYPE_CHECKING:
    from cuota.db.pool import Pool

_FEES = """SELECT posting, amount FROM transfers WHERE order_id = $1 AND posting LIKE 'merchant_fee%' ORDER BY number"""


async def give_terms(own: Own, refund_fee: RefundFee = RefundFee.RETURNED) -> None:
    now = own.context.now()
    for merchant in (own.merchant, own.auto_merchant):
        new = SettlementTerms(1, now, 590, 30, refund_fee)
        await versions.add(own.context.pool, merchant.merchant_id, new, now)


async def fees_of(own: Own, order: dict[str, Any]) -> list[tuple[str, int]]:
    rows = await own.context.pool.fetch(_FEES, UUID(order["orderId"]))
    return [(row["posting"], row["amount"]) for row in rows]


async def test_without_terms_no_fee_is_posted(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "60.00")
    await own.merchant.move(order, "refund", "60.00")
    assert await fees_of(own, order) == []


async def test_each_capture_pays_its_fee_and_a_refund_returns_its_part(own: Own) -> None:
    await give_terms(own)
    order = await own.merchant.approved("100.00")
    for operation, amount in (
        ("capture", "60.00"),
        ("capture", "40.00"),
        ("refund", "25.00"),
        ("refund", "75.00"),
    ):
        assert (await own.merchant.move(order, operation, amount)).status_code == 200
    # 5.9 % of 60 is 3.54, of 40 is 2.36, and each has 0.30: 6.50 in total. A quarter of that is 1.625.
    assert await fees_of(own, order) == [
        ("merchant_fee", 384),
        ("merchant_fee", 266),
        ("merchant_fee_returned", 163),
        ("merchant_fee_returned", 487),
    ]
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_fee_that_is_not_returned_stays_with_the_provider(own: Own) -> None:
    await give_terms(own, RefundFee.KEPT)
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "100.00")
    await own.merchant.move(order, "refund", "100.00")
    assert await fees_of(own, order) == [("merchant_fee", 620)]
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_capture_during_two_changes_of_the_terms_may_pay_by_the_terms_between_them(own: Own) -> None:
    await give_terms(own)
    own.service.clock.ahead += timedelta(hours=1)
    order, name = await own.merchant.approved("100.00"), own.merchant.name
    await change_terms(own.context, name, TermsChange(percent=400))
    own.service.clock.ahead += timedelta(minutes=1)
    assert (await own.merchant.move(order, "capture", "100.00")).status_code == 200
    assert await fees_of(own, order) == [("merchant_fee", 430)]
    # Simulate a capture that read the terms just before the second change, and was saved just after it.
    async with own.owner() as owner:
        at = await owner.fetchval(
            "SELECT created_at FROM movements WHERE order_id = $1", UUID(order["orderId"])
        )
    third = SettlementTerms(3, at, 700, 30)
    await versions.add(own.context.pool, own.merchant.merchant_id, third, at)
    assert (await verify(own.context.pool)).disagreements == []


async def test_an_automatic_capture_pays_the_fee_too(own: Own) -> None:
    await give_terms(own)
    order = await own.auto_merchant.approved("100.00")
    assert await fees_of(own, order) == [("merchant_fee", 620)]


async def test_the_merchant_s_api_shows_the_same_order_with_and_without_fees(own: Own) -> None:
    before = await own.merchant.approved("100.00")
    await give_terms(own)
    after = await own.merchant.approved("100.00")
    shown = []
    for order in (before, after):
        await own.merchant.move(order, "capture", "60.00")
        shown.append(await own.merchant.read(order))
    assert shown[0].keys() == shown[1].keys()
    assert [each["capturedAmount"] for each in shown] == [60, 60]


@pytest.mark.parametrize("posting", ["merchant_fee", "merchant_fee_returned"])
@pytest.mark.parametrize("cents", [1, -1])
async def test_one_altered_cent_of_a_fee_is_found(own: Own, posting: str, cents: int) -> None:
    await give_terms(own)
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "60.00")
    await own.merchant.move(order, "refund", "20.00")
    async with own.owner() as connection:
        await connection.execute("SET session_replication_role = replica")
        tag = await connection.execute(
            "UPDATE transfers SET amount = amount + $2 WHERE order_id = $1 AND posting = $3",
            UUID(order["orderId"]), cents, posting,
        )  # fmt: skip
        assert tag == "UPDATE 1"
    found = (await verify(own.context.pool)).disagreements
    assert any(posting in each.row for each in found)


async def test_the_database_refuses_to_return_more_fee_than_was_paid(own: Own) -> None:
    await give_terms(own)
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "60.00")
    async with own.owner() as connection:
        with pytest.raises(asyncpg.CheckViolationError, match="merchant's fees"):
            await connection.execute(
                "INSERT INTO transfers SELECT merchant_id, order_id, 99, 'merchant_fee_returned', cause, credit, debit,"
                " amount + 1, currency, created_at FROM transfers WHERE order_id = $1 AND posting = 'merchant_fee'",
                UUID(order["orderId"]),
            )


async def test_each_of_many_concurrent_captures_pays_its_fee_once(own: Own) -> None:
    await give_terms(own)
    orders = [await own.merchant.approved("100.00") for _ in range(6)]
    await asyncio.gather(
        *(own.merchant.move(order, "capture", "10.00") for order in orders for _ in range(4))
    )
    for order in orders:
        assert await fees_of(own, order) == [("merchant_fee", 89)] * 4
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_capture_before_new_terms_are_committed_pays_what_the_terms_say(own: Own) -> None:
    await give_terms(own)
    order, merchant_id = await own.merchant.approved("100.00"), own.merchant.merchant_id
    at = own.context.now()
    captures = replace(own.context, now=lambda: at)
    asked = MovementRequest(MovementKind.CAPTURE, "during", 6000)
    async with own.owner() as owner, owner.transaction():
        # The change runs in this transaction, so that the capture comes between its INSERT and its COMMIT.
        changes = replace(captures, pool=cast("Pool", owner))
        await change_terms(changes, str(merchant_id), TermsChange(percent=400))
        await capture_order(captures, merchant_id, UUID(order["orderId"]), asked)
    stored = await versions.read_all(own.context.pool, merchant_id)
    assert [each.percent for each in stored] == [590, 400]
    assert await fees_of(own, order) == [("merchant_fee", capture_fee(stored, 6000, at))]


async def test_a_version_that_is_valid_now_begins_at_a_whole_second_after_its_commit(own: Own) -> None:
    at = own.context.now()
    context = replace(own.context, now=lambda: at)
    for given in (None, at, at + timedelta(seconds=3)):
        _, found = await change_terms(context, own.merchant.name, TermsChange(percent=400), given)
        assert timedelta(seconds=30) <= found[-1].valid_from - at < timedelta(seconds=31)
        assert found[-1].valid_from.microsecond == 0
    later = at.replace(microsecond=0) + timedelta(days=1)
    _, found = await change_terms(context, own.merchant.name, TermsChange(percent=400), later)
    assert found[-1].valid_from == later


async def test_terms_that_were_saved_after_their_own_beginning_are_reported(own: Own) -> None:
    at = own.context.now()
    times = iter([at, at + timedelta(seconds=40)])
    context = replace(own.context, now=lambda: next(times))
    with pytest.raises(BadMerchant, match="saved too late"):
        await change_terms(context, own.merchant.name, TermsChange(percent=400))


async def test_terms_that_begin_in_the_past_begin_now_and_do_not_apply_to_earlier_captures(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "60.00")
    given = own.context.now() - timedelta(seconds=50)
    before = own.context.now()
    _, (version,) = await change_terms(
        own.context, str(own.merchant.merchant_id), TermsChange(percent=590), given
    )
    assert version.valid_from >= before
    assert await fees_of(own, order) == []
    assert (await verify(own.context.pool)).disagreements == []
