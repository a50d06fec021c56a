"""An order may be captured and refunded very many times. A statement about the order reads each of its rows a few times, not for each other row."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.core.order.movement import MovementKind
from cuota.db.order import orders
from cuota.db.plan import accounts, charges
from cuota.flows.plan import manage_plan
from cuota.flows.plan.limit_asks import Asker
from support.db.rows_read import rows_read
from support.db.settled import give_terms, rows
from support.makers import complete
from support.own_service import Own
from support.phones import phone_number

FEW, MANY = 15, 60
# The rows that a statement may read for each movement: the movement, its transfers, its events and its card refunds, some of them twice.
EACH = 12
CLAIMED = 10
_FIRST_REFUND = "SELECT * FROM card_refunds WHERE order_id = $1 ORDER BY card_refund_id LIMIT 1"


async def captured(own: Own, times: int) -> UUID:
    """Capture an order this many times. Each capture pays a fee."""
    order = await own.merchant.approved("100.00")
    for _ in range(times):
        assert (await own.merchant.move(order, "capture", "1.00")).status_code == 200
    return UUID(order["orderId"])


async def refunded(own: Own, times: int) -> tuple[UUID, UUID]:
    """Refund an order to its cards this many times. Return the ids of the order and of the consumer."""
    merchant, phone = own.merchant, phone_number()
    order = await merchant.create("200.00")
    await complete(own.service, merchant.merchant_id, order, phone=phone)
    order_id, consumer_id = UUID(order["orderId"]), own.context.vault.consumer_id(phone)
    detail = await manage_plan.find_plan(own.context, consumer_id, merchant.merchant_id, order_id)
    assert detail is not None
    rest = sum(item.total for item in detail.shown.plan[1:])
    await manage_plan.pay_early(own.context, detail, [2, 3, 4], rest, Asker(phone))
    assert (await merchant.move(order, "capture", "200.00")).status_code == 200
    for _ in range(times):
        assert (await merchant.move(order, "refund", "1.00")).status_code == 200
    return order_id, consumer_id


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


async def test_a_plan_with_many_card_refunds_is_read_once(own: Own) -> None:
    merchant = own.merchant.merchant_id
    few, many = await refunded(own, FEW), await refunded(own, MANY)
    less = await rows_read(own, accounts._PLAN, merchant, *few)
    assert MANY < await rows_read(own, accounts._PLAN, merchant, *many) < less + EACH * (MANY - FEW)


async def test_each_of_many_card_refunds_reads_what_chargebacks_returned_once(own: Own) -> None:
    merchant = own.merchant.merchant_id
    read: list[int] = []
    for times in (FEW, MANY):
        order, _ = await refunded(own, times)
        [each] = await rows(own, _FIRST_REFUND, order)
        charge, refund, due = each["charge_id"], each["card_refund_id"], each["try_at"]
        read.append(
            sum(
                [
                    await rows_read(own, charges._UNSENT, merchant, order),
                    await rows_read(own, charges._BORNE, merchant, order, charge),
                    await rows_read(own, charges._STANDING, merchant, order, refund),
                    await rows_read(own, charges._ASK, merchant, order, refund, due, each["amount"]),
                ]
            )
        )
    assert MANY < read[1] < read[0] + 4 * EACH * (MANY - FEW)


async def test_what_is_asked_about_one_card_refund_does_not_read_the_others_of_its_order(own: Own) -> None:
    merchant = own.merchant.merchant_id
    order, _ = await refunded(own, MANY)
    [each] = await rows(own, _FIRST_REFUND, order)
    charge, refund, due = each["charge_id"], each["card_refund_id"], each["try_at"]
    assert await rows_read(own, charges._STILL_PENDING, merchant, order, refund) < EACH
    assert await rows_read(own, charges._BORNE, merchant, order, charge) < EACH
    assert await rows_read(own, charges._STANDING, merchant, order, refund) < EACH
    assert await rows_read(own, charges._SETTLED, merchant, order, refund) < EACH
    assert await rows_read(own, charges._ASK, merchant, order, refund, due, each["amount"]) < EACH


async def test_a_claim_of_card_refunds_reads_each_due_refund_once_and_not_the_ledger(own: Own) -> None:
    merchant, now = own.merchant.merchant_id, own.context.now() + timedelta(minutes=1)
    await refunded(own, MANY)
    read = await rows_read(own, charges._CLAIM, merchant, now, now + charges.LEASE, CLAIMED)
    # Because the test's table is small, the planner sorts all its refunds. Of the claimed ones, it reads the refund and the charge.
    assert CLAIMED <= read <= MANY + 3 * CLAIMED
