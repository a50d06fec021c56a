"""Each movement of a merchant's money becomes exactly one settlement line, numbered without gaps, in the order of the feed."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota.flows.payout.adjust_merchant import adjust_merchant
from cuota.flows.payout.settle_movements import settle_merchant, settle_movements
from support.db.settled import LINES, SETTLEMENT, post_fee, publish, rows, settled
from support.own_service import Own


def short(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["number"], line["type"], line["gross"], line["fee"], line["net"]


async def thirty_captures(own: Own) -> UUID:
    """Capture 1.00 to 1.29 from one order, publish the events, and return the merchant's id."""
    merchant = own.merchant.merchant_id
    order = await own.merchant.approved("100.00")
    for cents in range(30):
        await own.merchant.move(order, "capture", f"1.{cents:02}")
    await publish(own.context, merchant)
    return merchant


async def test_a_capture_and_a_refund_have_one_line_each_with_the_reference_and_the_event(
    own: Own,
) -> None:
    order = await own.merchant.approved("100.00")
    assert (await own.merchant.move(order, "capture", "60.00", "first")).status_code == 200
    # The refund exceeds the unpaid amount, so it has two rows in the ledger.
    assert (await own.merchant.move(order, "refund", "55.00", "second")).status_code == 200
    assert (await own.merchant.move(order, "void", "30.00")).status_code == 200
    await settled(own.context, own.merchant.merchant_id)
    found = await rows(own, LINES, own.merchant.merchant_id)
    assert [short(line) for line in found] == [(1, "capture", 6000, 0, 6000), (2, "refund", -5500, 0, -5500)]
    assert [(line["reference"], str(line["order_id"])) for line in found] == [
        ("first", order["orderId"]), ("second", order["orderId"]),
    ]  # fmt: skip
    told = await rows(
        own,
        """SELECT f.position, m.movement_id, m.created_at FROM feed f
            JOIN events e USING (merchant_id, order_id, sequence)
            JOIN movements m ON m.order_id = e.order_id AND m.reference = e.reference
        WHERE m.kind <> 'void' ORDER BY f.position""",
    )
    assert [(line["sequence"], line["cause"], line["at"]) for line in found] == [
        tuple(row.values()) for row in told
    ]


async def test_fees_have_separate_lines_beside_the_movement_that_caused_them(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "100.00")
    await post_fee(own, order["orderId"], 590)
    await own.merchant.move(order, "refund", "50.00")
    await post_fee(own, order["orderId"], 295, "merchant_fee_returned")
    await settled(own.context, own.merchant.merchant_id)
    assert [short(line) for line in await rows(own, LINES, own.merchant.merchant_id)] == [
        (1, "capture", 10000, 0, 10000), (2, "fee", 0, -590, -590),
        (3, "refund", -5000, 0, -5000), (4, "fee_returned", 0, 295, 295),
    ]  # fmt: skip


async def test_an_automatic_capture_has_a_line(own: Own) -> None:
    await own.auto_merchant.approved("80.00")
    await settled(own.context, own.auto_merchant.merchant_id)
    assert [short(line) for line in await rows(own, LINES, own.auto_merchant.merchant_id)] == [
        (1, "capture", 8000, 0, 8000)
    ]


async def test_workers_at_the_same_time_write_each_line_once(own: Own) -> None:
    merchant = await thirty_captures(own)
    for _ in range(40):
        await asyncio.gather(*(settle_movements(own.context) for _ in range(4)))
    found = await rows(own, LINES, merchant)
    assert [line["number"] for line in found] == list(range(1, 31))
    assert len({line["cause"] for line in found}) == 30
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["lines"], held["open_net"], held["open_moved"]) == (30, 3435, 3435)


async def test_a_merchant_of_an_earlier_release_gets_lines_from_the_beginning_in_batches(own: Own) -> None:
    merchant = own.merchant.merchant_id
    orders = [await own.merchant.approved("100.00") for _ in range(3)]
    for order in orders:
        await own.merchant.move(order, "capture", "10.00")
    async with own.service.clock.moved(days=40):
        await own.merchant.move(orders[0], "refund", "1.00")
        # In batches of two events.
        await settled(own.context, merchant, most=2)
        (held,) = await rows(own, SETTLEMENT, merchant)
        assert (held["lines"], held["open_net"]) == (4, 2900)
        # All earlier movements are one batch, which closes at the next cutoff.
        assert held["close_at"] > own.service.clock.now()


async def test_an_adjustment_has_a_line_with_its_reason(own: Own) -> None:
    merchant = own.merchant.merchant_id
    _, adjustment = await adjust_merchant(own.context, own.merchant.name, -500, "A chargeback of June")
    await adjust_merchant(own.context, own.merchant.name, 125, "Goodwill")
    found = await rows(own, LINES, merchant)
    assert [short(line) for line in found] == [
        (1, "adjustment", -500, 0, -500), (2, "adjustment", 125, 0, 125),
    ]  # fmt: skip
    assert [line["reference"] for line in found] == ["A chargeback of June", "Goodwill"]
    assert found[0]["cause"] == adjustment
    assert await rows(own, "SELECT debit, credit, amount FROM merchant_transfers ORDER BY number") == [
        {"debit": "merchant_payable", "credit": "losses", "amount": 500},
        {"debit": "losses", "credit": "merchant_payable", "amount": 125},
    ]
    # The adjustment gets its line although nothing else happens.
    await settle_movements(own.context)
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert held["close_at"] > own.service.clock.now()


@pytest.mark.plain_postgresql("a trigger that reads its own transaction's rows does not run on shards")
async def test_a_batch_that_reaches_the_statement_timeout_is_written_in_smaller_batches(own: Own) -> None:
    merchant = await thirty_captures(own)
    owner = await asyncpg.connect(**own.where)
    # In this database, more than three lines take too long.
    await owner.execute(
        """CREATE FUNCTION too_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF (SELECT count(*) FROM settlement_lines WHERE xmin = pg_current_xact_id()::xid) > 3 THEN
                RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = 'query_canceled';
            END IF;
            RETURN NULL; END $$;
        CREATE TRIGGER too_slow AFTER INSERT ON settlement_lines FOR EACH ROW EXECUTE FUNCTION too_slow()"""
    )
    await owner.close()
    assert await settle_merchant(own.context, merchant) >= 30
    assert [line["number"] for line in await rows(own, LINES, merchant)] == list(range(1, 31))
