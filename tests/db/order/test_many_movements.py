"""An order may be captured and refunded very many times. A statement about the order reads each of its rows a few times, not for each other row."""

from __future__ import annotations

from uuid import UUID

from cuota.core.order.movement import MovementKind
from cuota.db.order import orders
from support.db.rows_read import rows_read
from support.db.settled import give_terms
from support.own_service import Own

FEW, MANY = 15, 60
# The rows that a statement may read for each movement: the movement, its transfers, its events and its card refunds, some of them twice.
EACH = 12


async def captured(own: Own, times: int) -> UUID:
    """Capture an order this many times. Each capture pays a fee."""
    order = await own.merchant.approved("100.00")
    for _ in range(times):
        assert (await own.merchant.move(order, "capture", "1.00")).status_code == 200
    return UUID(order["orderId"])


async def test_a_refund_reads_the_fees_of_many_captures_once(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_terms(own, merchant, percent=290, refund_fee="returned")
    few, many = await captured(own, FEW), await captured(own, MANY)
    for sql, asked in (
        (orders.FOR_MOVEMENT, lambda order: (order, MovementKind.REFUND, "")),
        (orders._FOR_MOVEMENTS, lambda order: ([order], [MovementKind.REFUND], [""])),
    ):
        less = await rows_read(own, sql, merchant, *asked(few))
        assert MANY < await rows_read(own, sql, merchant, *asked(many)) < less + EACH * (MANY - FEW)


async def test_a_refund_returns_the_fees_of_all_captures(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_terms(own, merchant, percent=500, refund_fee="returned")
    order = await captured(own, FEW)
    found = await orders.read(own.context.pool, merchant, order, MovementKind.REFUND, "", with_plan=True)
    assert found is not None
    assert [(each.amount, each.fee) for each in found.fees.captures] == [(100, 5)] * FEW
    assert found.fees.returned == 0
    for refunded in (2, 4):
        assert (await own.merchant.move({"orderId": str(order)}, "refund", "2.00")).status_code == 200
        found = await orders.read(own.context.pool, merchant, order, MovementKind.REFUND, "", with_plan=True)
        assert found is not None
        assert found.fees.returned == 5 * refunded
