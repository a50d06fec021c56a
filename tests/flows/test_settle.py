"""One decision is applied exactly once: stale ones are decided again, lost sessions are found out by reading again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest
from interrupted import CutPool

from cuota.core.order.movement import Movement, MovementKind, MovementRequest
from cuota.core.refusal import Code, Refused
from cuota.db.verify.orders import verify
from cuota.flows.context import Context
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.refund_order import refund_order
from cuota.flows.order.void_order import void_order
from own_service import Own, opened_own

FLOWS = {
    MovementKind.CAPTURE: capture_order,
    MovementKind.VOID: void_order,
    MovementKind.REFUND: refund_order,
}


async def approved(own: Own) -> UUID:
    """100.00, of which 40.00 are captured."""
    order = await own.merchant.approved("100.00")
    assert (await own.merchant.move(order, "capture", "40.00", "before")).status_code == 200
    return UUID(order["orderId"])


async def apply(
    own: Own, context: Context, order_id: UUID, kind: MovementKind, reference: str, cents: int = 1000
) -> Movement:
    return await FLOWS[kind](
        context, own.merchant.merchant_id, order_id, MovementRequest(kind, reference, cents)
    )


async def applied(own: Own, reference: str) -> list[tuple[UUID, int]]:
    """What stands under a reference; the whole ledger must agree with it."""
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT movement_id, amount FROM movements WHERE reference = $1", reference)
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("kind", list(MovementKind))
@pytest.mark.parametrize("when", ["before", "while", "after"])
async def test_a_session_lost_while_saving_leaves_it_applied_exactly_once(
    own: Own, when: str, kind: MovementKind
) -> None:
    order_id = await approved(own)
    pool = CutPool(own, when)
    moved = await apply(own, replace(own.context, pool=pool), order_id, kind, "lost")
    assert pool.cut == 1
    assert await applied(own, "lost") == [(moved.movement_id, 1000)]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_session_lost_under_the_rows_lock_leaves_it_applied_exactly_once(own: Own, when: str) -> None:
    order_id = await approved(own)
    others = iter(("other-1", "other-2"))

    async def contend() -> None:
        await apply(own, own.context, order_id, MovementKind.CAPTURE, next(others), 100)

    pool = CutPool(own, when, contend)
    moved = await apply(own, replace(own.context, pool=pool), order_id, MovementKind.CAPTURE, "lost")
    assert (pool.contended, pool.cut) == (2, 1)
    assert await applied(own, "lost") == [(moved.movement_id, 1000)]


async def test_a_stale_outcome_is_decided_again_on_what_is_now_true(own: Own) -> None:
    order_id = await approved(own)
    rest = 6000

    async def contend() -> None:
        if pool.contended == 1:
            await apply(own, own.context, order_id, MovementKind.VOID, "quicker", rest)

    pool = CutPool(own, "never", contend)
    with pytest.raises(Refused) as refused:
        await apply(own, replace(own.context, pool=pool), order_id, MovementKind.CAPTURE, "slower", rest)
    assert refused.value.code is Code.CAPTURE_EXCEEDS_AUTHORIZED
    assert await applied(own, "slower") == []


async def test_the_same_reference_that_was_quicker_elsewhere_is_a_duplicate(own: Own) -> None:
    order_id = await approved(own)

    async def contend() -> None:
        if pool.contended == 1:
            await apply(own, own.context, order_id, MovementKind.CAPTURE, "same")

    pool = CutPool(own, "never", contend)
    with pytest.raises(Refused) as refused:
        await apply(own, replace(own.context, pool=pool), order_id, MovementKind.CAPTURE, "same")
    assert refused.value.code is Code.DUPLICATE_REFERENCE
    assert len(await applied(own, "same")) == 1


async def test_on_an_order_busy_in_two_processes_nobody_starves(own: Own) -> None:
    order_id = await approved(own)
    async with opened_own(own.service.settings, own.where) as second:
        # Two pools and two sets of locks: only the row itself stands between them, as between worker processes.
        contexts = (own.context, second.context)
        await asyncio.gather(
            *(
                apply(own, contexts[n % 2], order_id, MovementKind.CAPTURE, f"busy-{n}", 100)
                for n in range(40)
            )
        )
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT captured FROM orders") == 4000 + 40 * 100
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_row_locked_for_too_long_is_said_to_be_busy_and_nothing_is_applied(own: Own) -> None:
    order_id = await approved(own)
    async with own.owner() as owner, owner.transaction():
        await owner.execute("SELECT 1 FROM orders FOR UPDATE")
        answer = await own.merchant.move({"orderId": order_id}, "capture", "10.00", "late")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert await applied(own, "late") == []
