"""The rail of a bank that takes files: a payout is sent when its file is written, and the bank's reports give its
result."""

from __future__ import annotations

from datetime import UTC, date, datetime
from uuid import UUID, uuid4

import pytest

from cuota.core.payout.bank_order import Originator
from cuota.core.payout.bank_report import Reported
from cuota.core.payout.nacha import MOST_CENTS
from cuota.rails.bank.files import FileBankRail
from cuota.rails.bank.protocol import BankOrder, BankState
from cuota.rails.settings import BankFileSettings, RailSettings
from cuota.rails.unavailable import RailUnavailable
from support.own_service import Own

US = Originator("Cuota Payments Inc.", "1234567890", "First Bank", "011000015", "000111222333")
MADE = datetime(2026, 11, 23, 14, tzinfo=UTC)
DAY = date(2026, 11, 24)


class Bank:
    """The rail with a clock that the test moves."""

    def __init__(self, own: Own, kind: str) -> None:
        self.at = MADE
        settings = RailSettings(bank="files", bank_files=BankFileSettings(kind, US))
        self.rail = FileBankRail(settings, own.context.pool, own.context.vault, lambda: self.at)

    async def state(self, payout_id: UUID) -> BankState:
        found = await self.rail.find(payout_id)
        assert found is not None
        return found.state


@pytest.fixture(params=["nacha", "pain001"])
def bank(request: pytest.FixtureRequest, own: Own) -> Bank:
    return Bank(own, request.param)


def an_order(amount: int = 10_005) -> BankOrder:
    return BankOrder(uuid4(), uuid4(), "A shop", 1, amount, "USD", "021000021", "123456789", DAY)


async def test_a_payout_is_sent_when_its_file_is_written_and_not_before(bank: Bank) -> None:
    order = an_order()
    assert await bank.rail.find(order.payout_id) is None
    for _ in range(2):
        with pytest.raises(RailUnavailable, match="next bank file"):
            await bank.rail.send(order)
    with pytest.raises(RailUnavailable, match="next bank file"):
        await bank.rail.find(order.payout_id)
    assert await bank.rail.books.make(bank.rail.format, MADE, DAY) == [1]
    answer = await bank.rail.send(order)
    assert (answer.state, answer.amount, answer.reference) == (BankState.ACCEPTED, 10_005, "file 1")
    assert await bank.rail.books.make(bank.rail.format, MADE, DAY) == []


async def test_the_bank_s_reports_give_the_result_of_a_payout(bank: Bank) -> None:
    paid, back = an_order(), an_order(700)
    for order in (paid, back):
        with pytest.raises(RailUnavailable):
            await bank.rail.send(order)
    await bank.rail.books.make(bank.rail.format, MADE, DAY)
    await bank.rail.books.report(Reported(10_005, payout_id=paid.payout_id), MADE)
    await bank.rail.books.report(Reported(700, "R03", payout_id=back.payout_id), MADE)
    assert await bank.state(paid.payout_id) is BankState.PAID
    found = await bank.rail.find(back.payout_id)
    assert found is not None
    assert (found.state, found.reason) == (BankState.RETURNED, "R03")


async def test_an_ach_payment_counts_as_paid_once_it_can_no_longer_come_back(own: Own) -> None:
    bank, order = Bank(own, "nacha"), an_order()
    with pytest.raises(RailUnavailable):
        await bank.rail.send(order)
    await bank.rail.books.make("nacha", MADE, DAY)
    # The payout can come back for two business days after Tuesday the 24th. The 26th is Thanksgiving, so this time ends
    # after Friday the 27th.
    bank.at = datetime(2026, 11, 28, 4, 59, tzinfo=UTC)
    assert await bank.state(order.payout_id) is BankState.ACCEPTED
    bank.at = datetime(2026, 11, 28, 5, 0, tzinfo=UTC)
    assert await bank.state(order.payout_id) is BankState.PAID
    await bank.rail.books.report(Reported(10_005, "R06", payout_id=order.payout_id), bank.at)
    assert await bank.state(order.payout_id) is BankState.RETURNED


async def test_a_payment_by_iso_20022_is_paid_only_when_the_statement_says_so(own: Own) -> None:
    bank, order = Bank(own, "pain001"), an_order()
    with pytest.raises(RailUnavailable):
        await bank.rail.send(order)
    await bank.rail.books.make("pain001", MADE, DAY)
    bank.at = datetime(2027, 1, 1, tzinfo=UTC)
    assert await bank.state(order.payout_id) is BankState.ACCEPTED


async def test_a_payment_that_is_too_large_for_a_nacha_file_is_not_queued_and_the_text_says_what_to_do(
    own: Own,
) -> None:
    bank = Bank(own, "nacha")
    with pytest.raises(RailUnavailable, match=r"at most 99999999\.99.*CUOTA_BANK_FORMAT=pain001"):
        await bank.rail.send(an_order(MOST_CENTS + 1))
    assert await bank.rail.books.waiting() == (0, 0)
