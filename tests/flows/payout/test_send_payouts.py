"""How a payout passes through the sandbox's bank: it is sent at once, and paid on the next business day or returned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.payout.arrival import at_opening, business_days_after, day_at_bank
from cuota.flows.context import Context
from cuota.flows.payout.send_payouts import NEVER_ARRIVED, send_payouts
from cuota.rails.bank.protocol import BankAnswer, BankState
from cuota.rails.bank.sandbox import SandboxBankRail
from support.own_service import Own, opened_own
from support.payouts import bank_paid, event_types, make_payout, payout_row, postings, returned_lines
from support.rails.bank import FlakyBank, SayingBank, bank_of, with_bank

# A Monday, 07:00 in New York. Thursday of that week is Thanksgiving.
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
TUESDAY_OPENING = at_opening(day_at_bank(MONDAY) + timedelta(days=1))
SENT = ("payout", "merchant_payable", "payouts_in_transit", 12_345)
PAID = ("payout_paid", "payouts_in_transit", "bank_clearing", 12_345)


class Hand:
    """A context whose clock stands still where the test sets it. The sandbox's bank has the same clock."""

    def __init__(self, own: Own) -> None:
        self.at = MONDAY
        self.own = own
        bank = SandboxBankRail(
            own.context.settings.rails, own.context.pool, own.context.vault, lambda: self.at
        )
        self.context: Context = with_bank(replace(own.context, now=lambda: self.at), bank)
        self.merchant_id: UUID = own.merchant.merchant_id

    async def payout(self, behaviour: str = "pays") -> UUID:
        return await make_payout(self.context, self.merchant_id, behaviour=behaviour)

    async def settlement(self) -> dict[str, Any]:
        (row,) = await self.context.pool.fetch(
            "SELECT * FROM settlements WHERE merchant_id = $1", self.merchant_id
        )
        return dict(row)


@pytest.fixture
async def hand(own: Own) -> Hand:
    # The test accounts of the merchants are in force from the real time on, which may be after MONDAY.
    async with own.owner() as owner:
        await owner.execute(
            "UPDATE bank_accounts SET effective_at = $1, announced_at = $1", MONDAY - timedelta(1)
        )
    return Hand(own)


async def test_a_payout_is_sent_at_once_and_paid_at_nine_on_the_next_business_day(hand: Hand) -> None:
    payout_id = await hand.payout()
    assert await send_payouts(hand.context) == 1
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["try_at"], row["sent_at"]) == ("sent", TUESDAY_OPENING, MONDAY)
    hand.at = TUESDAY_OPENING - timedelta(seconds=1)
    assert await send_payouts(hand.context) == 0
    hand.at = TUESDAY_OPENING
    assert await send_payouts(hand.context) == 1
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["paid_at"], row["problem"]) == ("paid", TUESDAY_OPENING, None)
    assert row["bank_reference"].startswith("bank_")
    assert await event_types(hand.context, payout_id) == ["payout.created", "payout.sent", "payout.paid"]
    assert await postings(hand.context, payout_id) == [SENT, PAID]
    assert await bank_paid(hand.context, payout_id) == [12_345]


async def test_after_five_business_days_a_paid_payout_is_not_looked_up_again(hand: Hand) -> None:
    payout_id = await hand.payout()
    looks = 0
    while (at := (await payout_row(hand.context, payout_id))["try_at"]) is not None:
        hand.at = max(hand.at, at)
        looks += await send_payouts(hand.context)
    # The payout is sent, found paid on Tuesday, and looked up on Wednesday, Friday, Monday, Tuesday and Wednesday.
    assert looks == 7
    assert hand.at == at_opening(day_at_bank(MONDAY) + timedelta(days=9))
    assert (await payout_row(hand.context, payout_id))["status"] == "paid"


async def test_a_returned_payout_is_credited_once_and_pauses_payouts(hand: Hand) -> None:
    payout_id = await hand.payout("returned")
    before = (await hand.settlement())["open_net"]
    await send_payouts(hand.context)
    hand.at = TUESDAY_OPENING
    await send_payouts(hand.context)
    assert (await payout_row(hand.context, payout_id))["status"] == "paid"
    for _ in range(10):
        hand.at += timedelta(days=1)
        await send_payouts(hand.context)
    row, settlement = await payout_row(hand.context, payout_id), await hand.settlement()
    returned_on = at_opening(business_days_after(day_at_bank(TUESDAY_OPENING), 2))
    assert row["status"] == "returned"
    assert row["return_reason"].startswith("R03")
    assert day_at_bank(row["returned_at"]) == day_at_bank(returned_on)
    assert settlement["paused_since"] == row["returned_at"]
    assert await returned_lines(hand.context, payout_id) == [12_345]
    assert settlement["open_net"] == before + 12_345
    back = ("payout_returned", "bank_clearing", "merchant_payable", 12_345)
    assert await postings(hand.context, payout_id) == [SENT, PAID, back]
    assert (await event_types(hand.context, payout_id))[-2:] == ["payout.paid", "payout.returned"]


async def test_a_payout_that_the_bank_rejects_is_credited_at_once(hand: Hand) -> None:
    payout_id = await hand.payout("rejected")
    assert await send_payouts(hand.context) == 1
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["sent_at"], row["try_at"]) == ("returned", None, None)
    assert row["return_reason"].startswith("R13")
    assert await event_types(hand.context, payout_id) == ["payout.created", "payout.returned"]
    back = ("payout_returned", "payouts_in_transit", "merchant_payable", 12_345)
    assert await postings(hand.context, payout_id) == [SENT, back]
    assert await returned_lines(hand.context, payout_id) == [12_345]
    assert (await hand.settlement())["paused_since"] == MONDAY


async def test_a_bank_that_does_not_answer_is_asked_forever_and_the_payout_is_still_sent(hand: Hand) -> None:
    payout_id = await hand.payout("silent")
    for _ in range(60):
        await send_payouts(hand.context)
        hand.at += timedelta(days=1)
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["problem"]) == ("sent", None)
    assert row["tries"] > 20
    assert row["try_at"] is not None
    assert await event_types(hand.context, payout_id) == ["payout.created", "payout.sent"]


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_lost_answer_is_looked_up_before_the_payout_is_sent_again(
    hand: Hand, *, arrives: bool
) -> None:
    payout_id = await hand.payout()
    flaky = FlakyBank(bank_of(hand.context), 1, arrives=arrives)
    context = with_bank(hand.context, flaky)
    await send_payouts(context)
    row = await payout_row(context, payout_id)
    assert (row["status"], row["problem"]) == ("created", "the answer was lost")
    assert row["try_at"] == MONDAY + timedelta(seconds=10)
    hand.at += timedelta(seconds=10)
    await send_payouts(context)
    assert flaky.calls == (["send", "find"] if arrives else ["send", "find", "send"])
    row = await payout_row(context, payout_id)
    assert (row["status"], row["problem"]) == ("sent", None)
    assert await bank_paid(context, payout_id) == [12_345]


async def test_a_payout_is_looked_up_if_the_worker_died_after_it_had_claimed_it(hand: Hand) -> None:
    payout_id = await hand.payout()
    flaky = FlakyBank(bank_of(hand.context))
    context = with_bank(hand.context, flaky)
    async with hand.own.owner() as owner:
        await owner.execute("UPDATE payouts SET tries = 1 WHERE payout_id = $1", payout_id)
    await send_payouts(context)
    assert flaky.calls == ["find", "send"]


async def test_a_payout_that_was_paid_before_its_first_look_up_also_gets_the_status_sent(hand: Hand) -> None:
    payout_id = await hand.payout()
    await send_payouts(with_bank(hand.context, FlakyBank(bank_of(hand.context), 1)))
    hand.at += timedelta(days=3)
    await send_payouts(hand.context)
    assert (await payout_row(hand.context, payout_id))["status"] == "paid"
    assert await event_types(hand.context, payout_id) == ["payout.created", "payout.sent", "payout.paid"]
    assert await postings(hand.context, payout_id) == [SENT, PAID]


async def test_two_workers_at_once_send_no_payout_twice(hand: Hand) -> None:
    payouts = [await hand.payout() for _ in range(12)]
    async with opened_own(hand.own.service.settings, hand.own.where) as second:
        flaky = FlakyBank(bank_of(hand.context))
        contexts = [
            with_bank(replace(each, now=lambda: hand.at), flaky) for each in (hand.context, second.context)
        ]
        claimed = await asyncio.gather(*(send_payouts(context) for context in contexts * 3))
    assert sum(claimed) == 12
    assert flaky.calls == ["send"] * 12
    for payout_id in payouts:
        assert await event_types(hand.context, payout_id) == ["payout.created", "payout.sent"]


async def test_without_a_bank_rail_a_payout_is_still_created_and_not_claimed(hand: Hand) -> None:
    payout_id = await hand.payout()
    assert await send_payouts(with_bank(hand.context, None)) == 0
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["tries"], row["try_at"]) == ("created", 0, MONDAY)


async def test_a_bank_s_answer_with_another_amount_changes_nothing_and_the_operator_sees_why(
    hand: Hand,
) -> None:
    payout_id = await hand.payout()

    class WrongBank(SayingBank):
        async def find(self, payout_id: UUID) -> BankAnswer | None:
            return BankAnswer(BankState.PAID, 1)

    await send_payouts(with_bank(hand.context, WrongBank()))
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["problem"]) == ("created", "the bank has another amount for this payout")


async def test_a_sent_payout_that_the_bank_does_not_know_is_never_sent_again(hand: Hand) -> None:
    payout_id = await hand.payout()
    bank = SayingBank()
    context = with_bank(hand.context, bank)
    await send_payouts(context)
    bank.amounts.clear()
    hand.at = TUESDAY_OPENING
    await send_payouts(context)
    row = await payout_row(hand.context, payout_id)
    assert (row["status"], row["problem"]) == ("sent", NEVER_ARRIVED)
    assert bank.amounts == {}


@asynccontextmanager
async def _other_account(hand: Hand) -> AsyncIterator[None]:
    async with hand.own.owner() as owner:
        await owner.execute(
            """INSERT INTO bank_accounts (merchant_id, account_id, routing, account, last4, effective_at, announced_at, created_at)
            SELECT merchant_id, gen_random_uuid(), routing, account, '9999', $2, $2, $2 FROM bank_accounts
            WHERE merchant_id = $1 LIMIT 1""",
            hand.merchant_id, hand.at,
        )  # fmt: skip
    yield


async def test_a_return_from_an_earlier_account_does_not_pause_payouts_to_the_new_one(hand: Hand) -> None:
    payout_id = await hand.payout("returned")
    await send_payouts(hand.context)
    hand.at += timedelta(days=1)
    async with _other_account(hand):
        hand.at += timedelta(days=9)
        await send_payouts(hand.context)
    assert (await payout_row(hand.context, payout_id))["status"] == "returned"
    assert (await hand.settlement())["paused_since"] is None
