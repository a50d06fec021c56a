"""Each decision is applied exactly once. A stale decision is made again. After a lost session, the order is read again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import pytest

from cuota.core.order.capture import capture
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind, MovementRequest
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Code, Refused
from cuota.db.hosts import NodeLost
from cuota.db.order import idempotency, orders
from cuota.db.order.orders import Found
from cuota.db.order.outcomes import Answer
from cuota.db.pool import Row
from cuota.db.session import Session
from cuota.db.verify.recalculate import verify
from cuota.flows.context import Context, utc_now
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.refund_order import refund_order
from cuota.flows.order.void_order import void_order
from cuota.flows.settle import settle
from support.db.locks import holder
from support.db.same_pool import SamePool
from support.flows.interrupted import CutPool
from support.own_service import Own, opened_own

FLOWS = {
    MovementKind.CAPTURE: capture_order,
    MovementKind.VOID: void_order,
    MovementKind.REFUND: refund_order,
}


async def approved(own: Own) -> UUID:
    """Make an order of 100.00 with 40.00 captured."""
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
    """Return the movement with this reference, and check that the ledger agrees."""
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT movement_id, amount FROM movements WHERE reference = $1", reference)
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("kind", list(MovementKind))
@pytest.mark.parametrize("when", ["before", "while", "after"])
async def test_if_the_session_is_lost_during_a_save_the_outcome_is_applied_exactly_once(
    own: Own, when: str, kind: MovementKind
) -> None:
    order_id = await approved(own)
    pool = CutPool(own, when)
    moved = await apply(own, replace(own.context, pool=pool), order_id, kind, "lost")
    assert pool.cut == 1
    assert await applied(own, "lost") == [(moved.movement_id, 1000)]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_if_the_session_is_lost_while_it_holds_the_row_s_lock_the_outcome_is_applied_exactly_once(
    own: Own, when: str
) -> None:
    order_id = await approved(own)
    others = iter(("other-1", "other-2"))

    async def contend() -> None:
        await apply(own, own.context, order_id, MovementKind.CAPTURE, next(others), 100)

    pool = CutPool(own, when, contend)
    moved = await apply(own, replace(own.context, pool=pool), order_id, MovementKind.CAPTURE, "lost")
    assert (pool.contended, pool.cut) == (2, 1)
    assert await applied(own, "lost") == [(moved.movement_id, 1000)]


async def test_after_a_stale_save_the_decision_is_made_again_with_the_new_state(own: Own) -> None:
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


async def test_a_reference_that_another_request_has_saved_first_is_a_duplicate(own: Own) -> None:
    order_id = await approved(own)

    async def contend() -> None:
        if pool.contended == 1:
            await apply(own, own.context, order_id, MovementKind.CAPTURE, "same")

    pool = CutPool(own, "never", contend)
    with pytest.raises(Refused) as refused:
        await apply(own, replace(own.context, pool=pool), order_id, MovementKind.CAPTURE, "same")
    assert refused.value.code is Code.DUPLICATE_REFERENCE
    assert len(await applied(own, "same")) == 1


async def test_on_an_order_that_two_processes_change_every_request_succeeds(own: Own) -> None:
    order_id = await approved(own)
    async with opened_own(own.service.settings, own.where) as second:
        # Two pools with separate locks, as in two worker processes: only the row's lock orders them.
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


async def test_a_row_locked_for_too_long_is_said_to_be_busy_and_nothing_is_applied(
    product_limits: None, own: Own
) -> None:
    order_id = await approved(own)
    async with own.owner() as owner, owner.transaction():
        await owner.execute(
            "SELECT 1 FROM orders WHERE merchant_id = $1 FOR UPDATE", own.merchant.merchant_id
        )
        answer = await own.merchant.move({"orderId": order_id}, "capture", "10.00", "late")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert await applied(own, "late") == []


async def test_a_deadlock_under_the_rows_lock_is_tried_again_and_applied_once(own: Own) -> None:
    ids, lease = (own.merchant.merchant_id, await approved(own)), uuid4()
    assert await idempotency.claim(own.context.pool, ids[0], "key", b"request", lease, utc_now())
    asked, movement_id = MovementRequest(MovementKind.CAPTURE, "locked", 1000), uuid4()
    reads = 0
    closing: asyncio.Future[object] | None = None

    async with holder(own.where) as other:

        async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Found | None:
            nonlocal reads, closing
            reads += 1
            if reads == 3:  # the first read under the row's lock
                await other.run("SELECT FROM idempotency_keys FOR UPDATE")
                closing = asyncio.ensure_future(other.run("SELECT FROM orders FOR UPDATE"))
                await other.until_waits(closing)
            return await orders.read_with_plan(session, merchant_id, order_id)

        def decide(found: Found) -> Outcome:
            outcome = capture(found.order, asked, movement_id, own.context.now(), found.terms)
            stale = replace(outcome, order=replace(outcome.order, version=outcome.order.version - 1))
            return stale if reads < 3 else outcome

        def keep(moved: Movement) -> Answer:
            return Answer("key", lease, 200, str(moved.movement_id).encode())

        settling = asyncio.ensure_future(settle(own.context, *ids, decide, read, keep))
        # PostgreSQL ends the transaction of `settle`, which began to wait last.
        while closing is None or not closing.done():
            assert not settling.done()
            await asyncio.sleep(0.01)
    await settling
    assert reads == 4
    assert await applied(own, "locked") == [(movement_id, 1000)]


class DyingNode(SamePool):
    """The node of the orders dies during the first read of an order. All other statements are answered."""

    reads = 0

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        if sql != orders.WITH_PLAN:
            return await super().fetchrow(sql, *values)
        self.reads += 1
        if self.reads == 1:
            raise ConnectionError("the node of this database session is gone")
        raise NodeLost("a node of the database cluster cannot be reached")


async def test_if_the_order_s_node_is_down_after_the_session_was_lost_one_more_read_decides_the_answer(
    own: Own,
) -> None:
    pool = DyingNode(own.context.pool)
    with pytest.raises(Refused) as refused:
        await settle(
            replace(own.context, pool=pool), own.merchant.merchant_id, await approved(own), lambda _: None
        )
    assert (refused.value.code, refused.value.retry_after) == (Code.UNAVAILABLE, 5)
    assert "the result is unknown" in str(refused.value)
    assert pool.reads == 2


async def test_a_decision_with_nothing_to_do_saves_nothing_and_returns_the_order_as_it_was_read(
    own: Own,
) -> None:
    ids = own.merchant.merchant_id, await approved(own)
    before = await orders.read_with_plan(own.context.pool, *ids)
    assert before is not None
    told: list[Event] = []

    def decide(found: Found) -> Outcome | None:
        assert found == before
        return None

    done = await settle(replace(own.context, happened=told.append), *ids, decide)
    assert (done.outcome, done.order, told) == (None, before.order, [])
    assert await orders.read_with_plan(own.context.pool, *ids) == before


@dataclass(frozen=True)
class Numbered:
    """An order, and the number of this read."""

    order: Order
    number: int


async def test_each_decision_uses_its_own_read_and_the_last_read_is_returned(own: Own) -> None:
    ids = own.merchant.merchant_id, await approved(own)
    reads = 0

    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Numbered | None:
        nonlocal reads
        reads += 1
        found = await orders.read_with_plan(session, merchant_id, order_id)
        return None if found is None else Numbered(found.order, reads)

    def decide(numbered: Numbered) -> Outcome | None:
        if numbered.number == 3:
            return None
        stale = replace(numbered.order, version=numbered.order.version - 1)
        return Outcome(order=stale, at=own.context.now())

    done = await settle(own.context, *ids, decide, read)
    assert (done.outcome, done.found.number, reads) == (None, 3, 3)
