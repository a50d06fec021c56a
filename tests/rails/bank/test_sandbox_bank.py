"""The sandbox's bank: its calendar and its test accounts. It stores no account number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cuota.rails.bank.protocol import BankState
from rails.bank.conftest import Bank
from support.makers import Running


@pytest.mark.parametrize(
    ("sent", "paid"),
    [
        # A Monday; the Wednesday before Thanksgiving; a Friday after midnight UTC, which is Thursday in New York; July
        # 2, 2027.
        ("2026-11-23T12:00", "2026-11-24T14:00"),
        ("2026-11-25T12:00", "2026-11-27T14:00"),
        ("2026-12-04T03:00", "2026-12-04T14:00"),
        ("2027-07-02T12:00", "2027-07-06T13:00"),
    ],
)
async def test_the_bank_pays_at_nine_in_new_york_on_the_next_business_day(
    sandbox_bank: Bank, sent: str, paid: str
) -> None:
    bank = sandbox_bank
    bank.at = datetime.fromisoformat(sent).replace(tzinfo=UTC)
    order = bank.order()
    await bank.rail.send(order)
    bank.at = datetime.fromisoformat(paid).replace(tzinfo=UTC) - timedelta(seconds=1)
    before = await bank.rail.find(order.payout_id, order.amount)
    bank.at += timedelta(seconds=1)
    after = await bank.rail.find(order.payout_id, order.amount)
    assert before is not None
    assert after is not None
    assert (before.state, after.state) == (BankState.ACCEPTED, BankState.PAID)


async def test_a_payment_to_the_unknown_account_is_paid_and_returned_two_business_days_later(
    sandbox_bank: Bank,
) -> None:
    bank, seen = sandbox_bank, []
    order = bank.order("returned")
    await bank.rail.send(order)
    # Tuesday, Wednesday, Thursday (Thanksgiving) and Friday, at 15:00 in New York.
    for day in (24, 25, 26, 27):
        bank.at = datetime(2026, 11, day, 20, 0, tzinfo=UTC)
        found = await bank.rail.find(order.payout_id, order.amount)
        assert found is not None
        seen.append(found.state.value)
    assert seen == ["paid", "paid", "paid", "returned"]


async def test_a_payment_to_any_other_account_number_is_paid(sandbox_bank: Bank) -> None:
    sandbox_bank.accounts["pays"] = "5550001111"
    assert (await sandbox_bank.rail.send(sandbox_bank.order())).state is BankState.ACCEPTED


async def test_the_bank_stores_only_the_last_four_digits(sandbox_bank: Bank, service: Running) -> None:
    order = sandbox_bank.order()
    await sandbox_bank.rail.send(order)
    (row,) = await service.context.pool.fetch(
        "SELECT o::text AS text FROM bank_simulator.orders o WHERE payout_id = $1", order.payout_id
    )
    assert order.account not in row["text"]
    assert order.routing not in row["text"]
