"""Each bank rail must keep these promises: one payment for each key, look-ups that find the payment, final answers,
exact amounts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from cuota.rails.bank.protocol import FINAL, BankState
from rails.bank.conftest import Bank


async def test_the_same_key_gets_the_same_answer_and_one_payment(bank: Bank) -> None:
    order = bank.order()
    first = await bank.rail.send(order)
    assert first.state is BankState.ACCEPTED
    assert first.reference
    for _ in range(3):
        assert await bank.rail.send(order) == first


async def test_orders_with_one_key_at_the_same_moment_are_one_payment(bank: Bank) -> None:
    order = bank.order()
    answers = await asyncio.gather(*(bank.rail.send(order) for _ in range(8)))
    assert len(set(answers)) == 1


async def test_orders_with_two_keys_are_two_payments(bank: Bank) -> None:
    first = bank.order()
    second = replace(first, payout_id=uuid4())
    references = {(await bank.rail.send(each)).reference for each in (first, second)}
    assert len(references) == 2


async def test_a_look_up_finds_a_sent_order_and_no_other(bank: Bank) -> None:
    order = bank.order()
    assert await bank.rail.find(order.payout_id, order.amount) is None
    sent = await bank.rail.send(order)
    assert await bank.rail.find(order.payout_id, order.amount) == sent
    assert await bank.rail.find(uuid4(), order.amount) is None


@pytest.mark.parametrize("amount", [1, 99, 100, 1_204_37, 99_999_999_99])
async def test_the_bank_pays_the_exact_amount(bank: Bank, amount: int) -> None:
    order = bank.order(amount=amount)
    assert (await bank.rail.send(order)).amount == amount
    found = await bank.rail.find(order.payout_id, amount)
    assert found is not None
    assert found.amount == amount


async def test_a_repeated_order_with_another_amount_still_pays_the_first_amount(bank: Bank) -> None:
    order = bank.order(amount=5000)
    await bank.rail.send(order)
    found = await bank.rail.rail.send(replace(order, amount=9000))
    assert found.amount == 5000


async def test_an_order_is_paid_on_its_arrival_date(bank: Bank) -> None:
    order = bank.order()
    await bank.rail.send(order)
    bank.at += timedelta(days=1, hours=12)
    found = await bank.rail.find(order.payout_id, order.amount)
    assert found is not None
    assert found.state is BankState.PAID


@pytest.mark.parametrize("behaviour", ["rejected", "returned"])
async def test_a_refused_or_returned_order_is_final_and_has_a_reason(bank: Bank, behaviour: str) -> None:
    order = bank.order(behaviour)
    await bank.rail.send(order)
    bank.at += timedelta(days=9)
    final = await bank.rail.find(order.payout_id, order.amount)
    assert final is not None
    assert (final.state, final.state in FINAL) == (BankState(behaviour), True)
    assert final.reason
    bank.at += timedelta(days=400)
    assert await bank.rail.find(order.payout_id, order.amount) == final
    assert await bank.rail.send(order) == final


async def test_a_rejected_order_is_answered_at_once(bank: Bank) -> None:
    assert (await bank.rail.send(bank.order("rejected"))).state is BankState.REJECTED


async def test_an_order_without_a_further_answer_is_still_accepted(bank: Bank) -> None:
    order = bank.order("silent")
    await bank.rail.send(order)
    bank.at += timedelta(days=99)
    found = await bank.rail.find(order.payout_id, order.amount)
    assert found is not None
    assert found.state is BankState.ACCEPTED


async def test_the_repr_of_an_order_does_not_contain_the_account_s_numbers(bank: Bank) -> None:
    order = bank.order()
    assert order.account not in repr(order)
    assert order.routing not in repr(order)
