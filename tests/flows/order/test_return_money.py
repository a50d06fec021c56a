"""A card refund happens once for each key, whatever answer is lost and however many workers run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from cuota.db.verify.recalculate import verify
from cuota.flows.order.return_money import return_money
from support.flows.interrupted import CutPool, FlakyRail, with_rail
from support.own_service import Own, opened_own


async def owed(own: Own, orders: int = 1) -> None:
    """Make orders of 100.00, each with a card refund of 15.00 that is due."""
    for _ in range(orders):
        order = await own.auto_merchant.approved("100.00")
        assert (await own.auto_merchant.move(order, "refund", "90.00")).status_code == 200


async def books(own: Own) -> tuple[list[str], list[int], list[int]]:
    """Return our states of the card refunds, the ledger's card refunds, and those in the card network's own records."""
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        states = await owner.fetch("SELECT state FROM card_refunds ORDER BY state")
        ledger = await owner.fetch("SELECT amount FROM transfers WHERE posting = 'card_refund'")
        network = await owner.fetch("SELECT amount FROM card_simulator.refunds")
        charged: list[Any] = await owner.fetch("SELECT sum(refunded) FROM card_simulator.charges")
    assert (charged[0][0] or 0) == sum(row[0] for row in network)
    return [row[0] for row in states], [row[0] for row in ledger], [row[0] for row in network]


async def test_a_due_card_refund_reaches_the_card_and_the_ledger_once(own: Own) -> None:
    await owed(own)
    assert await return_money(own.context) == 1
    assert await return_money(own.context) == 0
    assert await books(own) == (["succeeded"], [1500], [1500])


async def test_two_workers_at_once_claim_no_card_refund_twice(own: Own) -> None:
    await owed(own, 8)
    rails = [FlakyRail(own.context.rails.card) for _ in range(2)]
    async with opened_own(own.service.settings, own.where) as second:
        contexts = [with_rail(own.context, rails[0]), with_rail(second.context, rails[1])]
        claimed = await asyncio.gather(*(return_money(context) for context in contexts * 4))
    assert sum(claimed) == 8
    asked = [key for rail in rails for key in rail.asked]
    assert len(asked) == len(set(asked)) == 8
    assert await books(own) == (["succeeded"] * 8, [1500] * 8, [1500] * 8)


async def test_an_unreachable_rail_is_called_again_later_with_the_same_key(own: Own) -> None:
    await owed(own)
    rail = FlakyRail(own.context.rails.card, lost=2, arrives=False)
    context = with_rail(own.context, rail)
    for minutes in (0, 1, 5):
        assert (await books(own))[0] == ["pending"]
        async with own.service.clock.moved(minutes=minutes):
            assert await return_money(context) == 1
            assert await return_money(context) == 0
    assert len(rail.asked) == 3
    assert len(set(rail.asked)) == 1
    assert await books(own) == (["succeeded"], [1500], [1500])


async def test_a_rail_whose_answer_was_lost_refunds_the_money_once(own: Own) -> None:
    await owed(own)
    context = with_rail(own.context, FlakyRail(own.context.rails.card, lost=1))
    assert await return_money(context) == 1
    assert await books(own) == (["pending"], [], [1500])
    async with own.service.clock.moved(minutes=1):
        assert await return_money(context) == 1
    assert await books(own) == (["succeeded"], [1500], [1500])


async def test_a_card_refund_that_the_rail_refuses_is_still_owed_to_the_consumer(own: Own) -> None:
    await owed(own)
    async with own.owner() as owner:
        # The card network has already returned the money of this charge, for example after a dispute.
        await owner.execute("UPDATE card_simulator.charges SET refunded = amount")
    assert await return_money(own.context) == 1
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT (state, reason, try_at IS NULL) FROM card_refunds") == (
            "failed",
            "exceeds_charge",
            True,
        )
        due = (
            "SELECT sum(CASE WHEN credit = 'consumer_refund_due' THEN amount ELSE -amount END) FROM transfers"
        )
        assert await owner.fetchval(f"{due} WHERE 'consumer_refund_due' IN (debit, credit)") == 1500
    async with own.service.clock.moved(days=1):
        assert await return_money(own.context) == 0


async def test_a_session_lost_while_recording_the_answer_books_it_once(own: Own) -> None:
    for when in ("before", "while", "after"):
        await owed(own)
        pool = CutPool(own, when)
        assert await return_money(replace(own.context, pool=pool)) == 1
        assert pool.cut == 1
    assert await books(own) == (["succeeded"] * 3, [1500] * 3, [1500] * 3)


async def test_a_worker_whose_lease_ran_out_books_nothing_a_second_time(own: Own) -> None:
    await owed(own)

    async def meanwhile() -> None:
        if slow.contended == 1:
            async with own.service.clock.moved(minutes=2):
                assert await return_money(own.context) == 1

    slow = CutPool(own, "never", meanwhile)
    assert await return_money(replace(own.context, pool=slow)) == 1
    assert await books(own) == (["succeeded"], [1500], [1500])


async def test_a_card_refund_that_cannot_be_saved_does_not_delay_the_others(own: Own) -> None:
    await owed(own, 3)
    async with own.owner() as owner:
        first = await owner.fetchval("SELECT card_refund_id FROM card_refunds ORDER BY try_at LIMIT 1")
    await return_money(with_rail(own.context, FlakyRail(own.context.rails.card, accident=first)))
    assert await books(own) == (["pending", "succeeded", "succeeded"], [1500] * 2, [1500] * 2)
    async with own.service.clock.moved(minutes=2):
        assert await return_money(own.context) == 1
    assert (await books(own))[0] == ["succeeded"] * 3
