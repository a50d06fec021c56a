"""A batch closes at the merchant's cutoff into one payout. Its lines, ledger row, reserve and event are saved together
or not at all."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest

from cuota.core.payout.calendar import next_business_day
from cuota.core.payout.cutoff import BANK_ZONE
from cuota.flows.payout.adjust_merchant import adjust_merchant
from cuota.flows.payout.close_batches import close_batches
from support.db.settled import (
    LINES,
    PAYOUTS,
    SETTLEMENT,
    closed,
    cutoff_of,
    give_account,
    give_terms,
    publish,
    rows,
    settled,
    take_accounts,
)  # fmt: skip
from support.own_service import Own


async def captured(own: Own, *amounts: str) -> dict[str, Any]:
    """Capture these amounts of one order, and write their lines."""
    order = await own.merchant.approved("1000.00")
    for amount in amounts:
        assert (await own.merchant.move(order, "capture", amount)).status_code == 200
    await settled(own.context, own.merchant.merchant_id)
    return order


async def at_the_cutoff(own: Own) -> datetime:
    """Move the clock to the merchant's next cutoff, and return the cutoff."""
    cutoff = await cutoff_of(own, own.merchant.merchant_id)
    assert cutoff is not None
    own.service.clock.ahead += cutoff - own.service.clock.now() + timedelta(milliseconds=1)
    return cutoff


async def test_a_batch_becomes_one_payout_with_its_ledger_row_and_its_event(own: Own) -> None:
    merchant = own.merchant.merchant_id
    account = await give_account(own, merchant)
    order = await captured(own, "100.00", "20.00")
    await own.merchant.move(order, "refund", "30.00")
    await settled(own.context, merchant)
    assert await closed(own.context, merchant) == 0
    cutoff = await at_the_cutoff(own)
    assert await closed(own.context, merchant) == 1
    (payout,) = await rows(own, PAYOUTS, merchant)
    assert (payout["number"], payout["status"], payout["amount"], payout["currency"]) == (
        1,
        "created",
        9000,
        "USD",
    )
    assert (payout["first_line"], payout["last_line"], payout["account_id"]) == (1, 3, account)
    assert payout["cutoff"] == cutoff <= payout["closed_at"] == payout["try_at"]
    assert payout["arrival_date"] == next_business_day(payout["closed_at"].astimezone(BANK_ZONE).date())
    (posted,) = await rows(own, "SELECT * FROM merchant_transfers WHERE merchant_id = $1", merchant)
    assert (posted["posting"], posted["cause"], posted["amount"]) == ("payout", payout["payout_id"], 9000)
    assert (posted["debit"], posted["credit"]) == ("merchant_payable", "payouts_in_transit")
    (told,) = await rows(own, "SELECT * FROM events WHERE order_id = $1", payout["payout_id"])
    assert (told["type"], told["sequence"], told["amount"], payout["events"]) == (
        "payout.created",
        1,
        9000,
        1,
    )
    assert len(await rows(own, "SELECT * FROM outbox WHERE order_id = $1", payout["payout_id"])) == 1
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["closed"], held["open_net"], held["open_moved"], held["close_at"]) == (3, 0, 0, None)


async def test_a_movement_after_the_cutoff_is_in_the_next_batch_even_if_the_batch_closes_late(
    own: Own,
) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    order = await captured(own, "100.00")
    await at_the_cutoff(own)
    # Captured after the cutoff, before any worker has closed the batch.
    await own.merchant.move(order, "capture", "7.00")
    await settled(own.context, merchant)
    assert await closed(own.context, merchant) == 1
    await settled(own.context, merchant)
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [10000]
    await at_the_cutoff(own)
    assert await closed(own.context, merchant) == 1
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [10000, 700]


async def test_a_movement_before_the_cutoff_is_in_the_batch_although_it_was_not_published_yet(
    own: Own,
) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    order = await captured(own, "100.00")
    await own.merchant.move(order, "capture", "7.00")
    await at_the_cutoff(own)
    # The event is still in the outbox, so the batch waits for it.
    assert await close_batches(own.context) == 0
    await publish(own.context, merchant)
    assert await close_batches(own.context) == 1
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [10700]


async def test_a_stopped_service_closes_each_missed_cutoff_once_and_in_order(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    order = await captured(own, "10.00")
    cutoffs = []
    for amount in ("11.00", "12.00", "13.00"):
        # No worker closes a batch at these cutoffs.
        first = await cutoff_of(own, merchant)
        assert first is not None
        cutoffs.append(first + timedelta(days=len(cutoffs)))
        own.service.clock.ahead += cutoffs[-1] + timedelta(hours=2) - own.service.clock.now()
        await own.merchant.move(order, "capture", amount)
    await publish(own.context, merchant)
    for _ in range(10):
        await asyncio.gather(*(close_batches(own.context) for _ in range(4)))
    found = await rows(own, PAYOUTS, merchant)
    assert [(row["amount"], row["cutoff"]) for row in found] == list(
        zip((1000, 1100, 1200), cutoffs, strict=True)
    )
    assert [(row["first_line"], row["last_line"]) for row in found] == [(1, 1), (2, 2), (3, 3)]
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["open_net"], held["close_at"]) == (1300, cutoffs[-1] + timedelta(days=1))


async def test_a_debt_and_a_small_amount_are_carried_until_the_minimum_is_reached(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await give_terms(own, merchant, minimum=500)
    order = await captured(own, "100.00")
    await adjust_merchant(own.context, own.merchant.name, -12000, "A loan that is paid back")
    await at_the_cutoff(own)
    assert await closed(own.context, merchant) == 1
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["closed"], held["open_net"], held["carried"]) == (0, -2000, -2000)
    await own.merchant.move(order, "capture", "24.99")
    await at_the_cutoff(own)
    assert await closed(own.context, merchant) == 1
    assert await rows(own, PAYOUTS, merchant) == []
    await own.merchant.move(order, "capture", "0.01")
    await at_the_cutoff(own)
    await closed(own.context, merchant)
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [500]
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["open_net"], held["carried"]) == (0, 0)


@pytest.mark.parametrize("why", ["no bank account", "paused"])
async def test_a_merchant_that_cannot_be_paid_keeps_its_open_lines(own: Own, why: str) -> None:
    merchant = own.merchant.merchant_id
    await take_accounts(own, merchant)
    await captured(own, "100.00")
    if why == "paused":
        await give_account(own, merchant)
        async with own.owner() as connection:
            await connection.execute("UPDATE settlements SET paused_since = now()")
    await at_the_cutoff(own)
    assert await closed(own.context, merchant) == 1
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["open_net"], held["carried"], await rows(own, PAYOUTS, merchant)) == (10000, 10000, [])
    await give_account(own, merchant)
    async with own.owner() as connection:
        await connection.execute("UPDATE settlements SET paused_since = NULL")
    await at_the_cutoff(own)
    await closed(own.context, merchant)
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [10000]


async def test_a_weekly_merchant_is_paid_only_on_monday(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await give_terms(own, merchant, payout="weekly", cutoff="17:00")
    await captured(own, "100.00")
    for _ in range(8):
        await at_the_cutoff(own)
        await closed(own.context, merchant)
        if await cutoff_of(own, merchant) is None:
            break
    (payout,) = await rows(own, PAYOUTS, merchant)
    local = payout["cutoff"].astimezone(BANK_ZONE)
    assert (local.weekday(), local.hour) == (0, 17)


async def test_a_reserve_is_held_from_each_batch_and_released_after_the_configured_days(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await give_terms(own, merchant, reserve=1050, reserve_days=2)
    order = await captured(own, "100.00")
    await own.merchant.move(order, "refund", "0.05")
    await at_the_cutoff(own)
    await closed(own.context, merchant)
    # 10.5 % of 99.95 is 10.49475.
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [9995 - 1049]
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert held["reserved"] == 1049
    for _ in range(2):
        await at_the_cutoff(own)
        await closed(own.context, merchant)
    found = await rows(own, PAYOUTS, merchant)
    assert [row["amount"] for row in found] == [9995 - 1049, 1049]
    assert found[1]["cutoff"] - found[0]["cutoff"] == timedelta(days=2)
    assert [(line["type"], line["net"]) for line in await rows(own, LINES, merchant)] == [
        ("capture", 10000), ("refund", -5), ("reserve_held", -1049), ("reserve_released", 1049),
    ]  # fmt: skip
    (held,) = await rows(own, SETTLEMENT, merchant)
    assert (held["reserved"], held["close_at"]) == (0, None)


async def test_a_reserve_of_the_whole_batch_is_held_and_paid_when_it_is_released(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await give_terms(own, merchant, reserve=10000, reserve_days=1)
    await captured(own, "100.00")
    for _ in range(2):
        await at_the_cutoff(own)
        await closed(own.context, merchant)
    assert [row["amount"] for row in await rows(own, PAYOUTS, merchant)] == [10000]
    assert [line["type"] for line in await rows(own, LINES, merchant)] == [
        "capture", "reserve_held", "reserve_released",
    ]  # fmt: skip


BAD_PAYOUTS = {
    "a cent more than its lines": ("10001", "1", "1"),
    "a line that does not exist": ("10000", "1", "2"),
    "lines that do not begin where the last payout ended": ("500", "2", "2"),
}


@pytest.mark.parametrize("why", BAD_PAYOUTS)
async def test_the_database_refuses_a_payout_of(own: Own, why: str) -> None:
    merchant, (amount, first, last) = own.merchant.merchant_id, BAD_PAYOUTS[why]
    await captured(own, "100.00")
    if first == "2":
        await adjust_merchant(own.context, own.merchant.name, 500, "Goodwill")
    insert = f"""INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line,
        account_id, cutoff, closed_at, arrival_date) VALUES ($1, gen_random_uuid(), 1, 'created', {amount}, 'USD', {first},
        {last}, gen_random_uuid(), now(), now(), now())"""
    async with own.owner() as connection:
        with pytest.raises(asyncpg.CheckViolationError, match=r"payout .*line"):
            await connection.execute(insert, merchant)


async def test_the_database_refuses_a_second_payout_of_the_same_line(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await captured(own, "100.00")
    await at_the_cutoff(own)
    await closed(own.context, merchant)
    copied = """INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line,
        account_id, cutoff, closed_at, arrival_date) SELECT merchant_id, gen_random_uuid(), {}, status, amount, currency,
        first_line, last_line, account_id, cutoff, closed_at, arrival_date FROM payouts WHERE merchant_id = $1"""
    async with own.owner() as connection:
        for number in ("1", "2"):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError):
                await connection.execute(copied.format(number), merchant)
        for change in (
            "UPDATE settlement_lines SET net = net + 1, gross = gross + 1",
            "DELETE FROM settlement_lines",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
                await connection.execute(change)
