"""After an outage of the bank, or of the job that asks it: payouts go where and when the service says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.payout.bank_order import Originator
from cuota.db.payout import listing, operator_list
from cuota.db.webhook import events
from cuota.flows.context import Context
from cuota.flows.payout.bank_files import MadeFiles, make_files
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import send_payouts
from cuota.flows.webhook.show_event import event_body
from cuota.rails.bank.files import FileBankRail
from cuota.rails.bank.protocol import BankAnswer, BankOrder, BankRail
from cuota.rails.bank.sandbox import SandboxBankRail
from cuota.rails.settings import BankFileSettings, RailSettings
from cuota.rails.unavailable import RailUnavailable
from support.own_service import Own
from support.payouts import (
    CHANGED,
    bank_paid,
    event_types,
    make_payout,
    payout_row,
    postings,
    returned_lines,
)
from support.rails.bank import FlakyBank, with_bank

US = Originator("Cuota Payments Inc.", "1234567890", "First Bank", "011000015", "000111222333")
# A Monday, 07:00 in New York. Thursday of that week is Thanksgiving.
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
TUESDAY, NEXT_TUESDAY = date(2026, 11, 24), date(2026, 12, 1)


@dataclass
class Days:
    """A context whose clock the test sets, with the sandbox's bank."""

    own: Own
    at: datetime = MONDAY
    bank: BankRail = field(init=False)
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        at_hand = replace(self.own.context, now=lambda: self.at)
        self.bank = SandboxBankRail(at_hand.settings.rails, at_hand.pool, at_hand.vault, lambda: self.at)
        self.context = with_bank(at_hand, self.bank)

    @property
    def merchant_id(self) -> UUID:
        return self.own.merchant.merchant_id

    async def payout(self) -> UUID:
        return await make_payout(self.context, self.merchant_id)

    async def arrival(self, payout_id: UUID) -> date:
        """Return the day of arrival that the merchant reads."""
        found = await listing.payout(self.context.pool, self.merchant_id, payout_id)
        assert found is not None
        return found.arrival_date

    async def told(self, payout_id: UUID) -> list[dict[str, Any]]:
        """Return the bodies of the payout's events."""
        facts = (await events.facts(self.context.pool, self.merchant_id, [payout_id]))[payout_id]
        written = await event_types(self.context, payout_id)
        bodies = [event_body(facts, number, sandbox=True) for number in range(1, len(written) + 1)]
        return [json.loads(body) for body in bodies]

    async def troubled(self) -> int:
        return await operator_list.count_troubled(self.context.pool, days_now(self.context))


class Asked(FlakyBank):
    """Keeps the orders that it gets."""

    def __init__(self, rail: BankRail, lost: int = 0, *, arrives: bool = True) -> None:
        super().__init__(rail, lost, arrives=arrives)
        self.orders: list[BankOrder] = []

    async def send(self, order: BankOrder) -> BankAnswer:
        self.orders.append(order)
        return await super().send(order)


class SlowBank(FlakyBank):
    """Gets its orders late: they do not arrive before `arrive` is called."""

    def __init__(self, rail: BankRail) -> None:
        super().__init__(rail)
        self.on_the_way: list[BankOrder] = []

    async def send(self, order: BankOrder) -> BankAnswer:
        self.on_the_way.append(order)
        raise RailUnavailable("no answer")

    async def arrive(self) -> None:
        for order in self.on_the_way:
            await super().send(order)


@pytest.fixture
async def days(own: Own) -> Days:
    # The test accounts of the merchants are in force from the real time on, which may be after MONDAY.
    async with own.owner() as owner:
        before = MONDAY - timedelta(days=1)
        await owner.execute(
            "UPDATE bank_accounts SET effective_at = $1, announced_at = $1, created_at = $1", before
        )
    return Days(own)


async def replaced_in_five_seconds(days: Days) -> UUID:
    """Make a payout whose account is replaced five seconds later. Return the payout's id."""
    await change_bank_account(days.context, days.merchant_id, CHANGED["returned"])
    days.at += timedelta(days=3, seconds=-5)
    return await days.payout()


@pytest.mark.parametrize("tried", [False, True], ids=["job stood still", "bank did not answer"])
async def test_a_payout_that_is_sent_days_late_is_expected_on_the_next_business_day(
    days: Days, *, tried: bool
) -> None:
    payout_id = await days.payout()
    if tried:
        await send_payouts(with_bank(days.context, FlakyBank(days.bank, 1, arrives=False)))
    days.at += timedelta(days=7)
    bank = Asked(days.bank)
    await send_payouts(with_bank(days.context, bank))
    assert (await payout_row(days.context, payout_id))["status"] == "sent"
    assert [order.arrival_date for order in bank.orders] == [NEXT_TUESDAY]
    assert await days.arrival(payout_id) == NEXT_TUESDAY
    # So nobody is told that the bank is late.
    assert await days.troubled() == 0


async def test_a_late_order_whose_answer_is_lost_keeps_the_day_that_the_bank_was_told(days: Days) -> None:
    payout_id = await days.payout()
    days.at += timedelta(days=7)
    await send_payouts(with_bank(days.context, FlakyBank(days.bank, 1)))
    days.at += timedelta(seconds=10)
    await send_payouts(days.context)
    assert (await payout_row(days.context, payout_id))["status"] == "sent"
    assert await days.arrival(payout_id) == NEXT_TUESDAY
    assert await days.troubled() == 0


async def test_a_payout_that_waited_days_for_its_file_arrives_on_the_day_of_the_file(days: Days) -> None:
    settings = RailSettings(bank="files", bank_files=BankFileSettings("pain001", US))
    rail = FileBankRail(settings, days.context.pool, days.context.vault, lambda: days.at)
    context = with_bank(days.context, rail)
    payout_id = await days.payout()
    await send_payouts(context)
    days.at += timedelta(days=7)
    assert await make_files(context, rail, NEXT_TUESDAY) == MadeFiles([1], 0, [])
    await send_payouts(context)
    assert (await payout_row(context, payout_id))["status"] == "sent"
    assert await days.arrival(payout_id) == NEXT_TUESDAY
    assert await days.troubled() == 0


async def test_a_payout_that_is_sent_on_its_day_keeps_its_day_of_arrival(days: Days) -> None:
    payout_id = await days.payout()
    await send_payouts(days.context)
    assert await days.arrival(payout_id) == TUESDAY
    assert (await payout_row(days.context, payout_id))["released_arrival"] is None


@pytest.mark.parametrize("tried", [False, True], ids=["job stood still", "bank did not answer"])
async def test_a_payout_is_not_sent_to_an_account_that_was_replaced_during_the_outage(
    days: Days, *, tried: bool
) -> None:
    payout_id = await days.payout()
    if tried:
        await send_payouts(with_bank(days.context, FlakyBank(days.bank, 1, arrives=False)))
    await change_bank_account(days.context, days.merchant_id, CHANGED["returned"])
    days.at += timedelta(days=7)
    bank = Asked(days.bank)
    await send_payouts(with_bank(days.context, bank))
    row = await payout_row(days.context, payout_id)
    assert (row["status"], bank.orders) == ("returned", [])
    assert await bank_paid(days.context, payout_id) == []
    assert await event_types(days.context, payout_id) == ["payout.created", "payout.returned"]
    assert await returned_lines(days.context, payout_id) == [12_345]
    assert [posting for posting, *_ in await postings(days.context, payout_id)] == [
        "payout",
        "payout_returned",
    ]
    # The next payout goes to the new account, so payouts do not pause.
    [settlement] = await days.context.pool.fetch(
        "SELECT paused_since FROM settlements WHERE merchant_id = $1", days.merchant_id
    )
    assert settlement["paused_since"] is None


async def test_a_payout_that_is_sent_on_its_day_does_not_go_to_an_account_that_was_replaced_since_the_closing(
    days: Days,
) -> None:
    payout_id = await replaced_in_five_seconds(days)
    # The job stood still for some hours, and the day of arrival is not over.
    days.at += timedelta(hours=5)
    bank = Asked(days.bank)
    await send_payouts(with_bank(days.context, bank))
    assert ((await payout_row(days.context, payout_id))["status"], bank.orders) == ("returned", [])
    assert await returned_lines(days.context, payout_id) == [12_345]


async def test_an_order_that_is_still_on_its_way_when_the_account_is_replaced_is_not_paid_twice(
    days: Days,
) -> None:
    payout_id = await replaced_in_five_seconds(days)
    bank = SlowBank(days.bank)
    context = with_bank(days.context, bank)
    await send_payouts(context)
    days.at += timedelta(seconds=15)
    await send_payouts(context)
    assert (await payout_row(context, payout_id))["status"] == "created"
    await bank.arrive()
    days.at += timedelta(hours=2)
    await send_payouts(context)
    assert len(bank.on_the_way) == 1
    assert (await payout_row(context, payout_id))["status"] == "sent"
    assert await bank_paid(context, payout_id) == [12_345]
    assert await returned_lines(context, payout_id) == []


async def test_a_payout_whose_order_never_arrived_is_given_back_an_hour_after_the_account_was_replaced(
    days: Days,
) -> None:
    payout_id = await replaced_in_five_seconds(days)
    bank = SlowBank(days.bank)
    context = with_bank(days.context, bank)
    await send_payouts(context)
    for _ in range(4):
        days.at += timedelta(hours=1)
        await send_payouts(context)
    assert len(bank.on_the_way) == 1
    assert (await payout_row(context, payout_id))["status"] == "returned"
    assert await returned_lines(context, payout_id) == [12_345]


async def test_a_payment_to_a_replaced_account_does_not_get_into_a_file(days: Days) -> None:
    settings = RailSettings(bank="files", bank_files=BankFileSettings("nacha", US))
    rail = FileBankRail(settings, days.context.pool, days.context.vault, lambda: days.at)
    context = with_bank(days.context, rail)
    payout_id = await days.payout()
    await send_payouts(context)
    await change_bank_account(context, days.merchant_id, CHANGED["returned"])
    days.at += timedelta(days=7)
    assert await make_files(context, rail, NEXT_TUESDAY) == MadeFiles([], 1, [])
    await send_payouts(context)
    assert (await payout_row(context, payout_id))["status"] == "returned"
    assert await rail.books.queued() == []
    assert await returned_lines(context, payout_id) == [12_345]


async def test_a_payout_that_reached_the_bank_before_the_account_was_replaced_stays_sent(days: Days) -> None:
    payout_id = await days.payout()
    await send_payouts(with_bank(days.context, FlakyBank(days.bank, 1)))
    await change_bank_account(days.context, days.merchant_id, CHANGED["returned"])
    days.at += timedelta(days=7)
    await send_payouts(days.context)
    assert (await payout_row(days.context, payout_id))["status"] == "paid"
    assert await bank_paid(days.context, payout_id) == [12_345]


async def test_the_events_name_the_day_that_was_expected_when_they_were_written(days: Days) -> None:
    payout_id = await days.payout()
    before = await days.told(payout_id)
    days.at += timedelta(days=7)
    await send_payouts(days.context)
    days.at += timedelta(days=1, hours=2)
    await send_payouts(days.context)
    told = await days.told(payout_id)
    assert [body["type"] for body in told] == ["payout.created", "payout.sent", "payout.paid"]
    assert [body["payout"]["arrivalDate"] for body in told] == ["2026-11-24", "2026-12-01", "2026-12-01"]
    assert told[:1] == before
