"""An order may be captured very many times. Its settlement and its check read few rows, even without the planner's statistics.

A table has no statistics after a restore, or after a crash soon after its first rows.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.db.payout import balance, lines
from cuota.db.verify import settlements
from support.db.rows_read import rows_read
from support.db.settled import LINES, publish, rows, settled
from support.own_service import Own

CAPTURES = 40
# The rows that may be read for each capture: its events in the feed, its movement, its transfers, its line.
MOST = 20 * CAPTURES


async def captured_often(own: Own) -> UUID:
    order = await own.merchant.approved("100.00")
    for _ in range(CAPTURES):
        assert (await own.merchant.move(order, "capture", "1.00")).status_code == 200
    return own.merchant.merchant_id


async def test_settlement_lines_of_an_order_with_many_captures(own: Own) -> None:
    merchant = await captured_often(own)
    await publish(own.context, merchant)
    coming = await lines.next_movements(own.context.pool, merchant, own.context.now(), 1000)
    cutoff = own.context.now() + timedelta(days=1)
    await lines.open_batch(own.context.pool, merchant, coming.position, cutoff)
    assert CAPTURES < await rows_read(own, lines._SETTLE, merchant, 1000) < MOST
    assert len(await rows(own, LINES, merchant)) == CAPTURES


async def test_a_check_of_the_lines_of_an_order_with_many_captures(own: Own) -> None:
    merchant = await captured_often(own)
    await settled(own.context, merchant)
    assert CAPTURES < await rows_read(own, settlements._MOVED, merchant, 0, 1000) < MOST
    assert CAPTURES < await rows_read(own, settlements._STRAY, merchant, 0, 1000) < MOST


async def test_a_balance_with_many_captures_that_are_not_settled_yet(own: Own) -> None:
    merchant = await captured_often(own)
    assert CAPTURES < await rows_read(own, balance._READ, merchant, own.context.now()) < MOST
    found = await balance.read(own.context.pool, merchant, own.context.now())
    assert found.available + found.pending == CAPTURES * 100
