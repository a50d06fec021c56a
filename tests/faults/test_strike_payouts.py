"""A fault at each step of sending a payout: the bank pays it once, and each status is recorded and reported once."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from support.faults.struck_shop import ACTIONS, Shop, struck_shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

CLAIM, MOVE = "UPDATE payouts p SET try_at", "move_payout("
SENDING = {
    "before the payout is claimed": ("before", "sql", CLAIM),
    "after the payout is claimed": ("after", "sql", CLAIM),
    "before the bank is asked": ("before", "call", "SandboxBankRail.send"),
    "after the bank has accepted and before that is recorded": ("after", "call", "SandboxBankRail.send"),
    "before sent is recorded": ("before", "sql", MOVE),
    "after sent is recorded": ("after", "sql", MOVE),
}
PAYING = {
    "before the bank is asked whether it paid": ("before", "call", "SandboxBankRail.find"),
    "after the bank has said that it paid": ("after", "call", "SandboxBankRail.find"),
    "before paid is recorded": ("before", "sql", MOVE),
    "after paid is recorded": ("after", "sql", MOVE),
}
STATUS = "SELECT status = $2 FROM payouts WHERE payout_id = $1::text::uuid"
TOLD = "SELECT array_agg(type ORDER BY sequence) FROM events WHERE order_id = $1::text::uuid"
IN_THE_BANK = "SELECT array_agg(amount) FROM bank_simulator.orders WHERE payout_id = $1::text::uuid"
POSTED = "SELECT array_agg(posting ORDER BY number) FROM merchant_transfers WHERE cause = $1::text::uuid"
UNKNOWN = """SELECT count(*) FROM bank_simulator.orders b WHERE NOT EXISTS (
    SELECT FROM payouts p WHERE p.payout_id = b.payout_id)"""
# The statements that close a batch of one adjustment. The payout's row is written last, because the service then finds
# it.
MERCHANT = "SELECT merchant_id::text FROM bank_accounts ORDER BY created_at LIMIT 1"
CLOSE = (
    """SELECT post_merchant_transfer($1::text::uuid, 'adjustment', $2::text::uuid, 'losses', 'merchant_payable', 4711, 'USD', now(),
        'adjustment', 4711)""",
    """SELECT post_merchant_transfer($1::text::uuid, 'payout', $2::text::uuid, 'merchant_payable', 'payouts_in_transit', 4711, 'USD',
        now(), NULL, NULL)""",
    "SELECT write_payout_event($1::text::uuid, $2::text::uuid, 1, 'payout.created', 4711, NULL, now())",
    """WITH closed AS (
        UPDATE settlements SET payouts = payouts + 1, closed = lines, open_net = open_net - 4711
        WHERE merchant_id = $1::text::uuid RETURNING merchant_id, payouts, lines
    )
    INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id, cutoff,
        closed_at, arrival_date, events, try_at)
    SELECT c.merchant_id, $2::text::uuid, c.payouts, 'created', 4711, 'USD', c.lines, c.lines, b.account_id, now(), now(),
        (now() + k.ahead)::date + 1, 1, now() FROM closed c JOIN bank_accounts b USING (merchant_id), sandbox_clock k""",
)


def cases(moments: dict[str, tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Combine each moment with a kill and with one other fault. `make faults` combines each moment with all faults."""
    return [
        (moment, action)
        for number, moment in enumerate(moments)
        for action in ACTIONS
        if LONG or action in {"kill", ACTIONS[number % 3]}
    ]


@pytest.fixture(scope="module")
def paying() -> Iterator[Shop]:
    """A separate service, because these tests move its clock by weeks."""
    with struck_shop() as made:
        made.later("1 second")
        yield made


def closed(shop: Shop) -> str:
    """Close a batch and return its payout. Every check of the ledger is about one payout of 47.11."""
    merchant, payout = shop.books.one(MERCHANT), str(uuid4())
    for sql in CLOSE:
        shop.books.rows(sql, merchant, payout)
    return payout


def paid_once(shop: Shop, payout: str) -> None:
    """Let the rest of the time pass, and compare our ledger with the bank's records."""
    shop.until(STATUS, payout, "paid")
    assert shop.books.one(IN_THE_BANK, payout) == [4711]
    assert shop.books.one(UNKNOWN) == 0
    assert shop.books.one(POSTED, payout) == ["adjustment", "payout", "payout_paid"]
    assert shop.books.one(TOLD, payout) == ["payout.created", "payout.sent", "payout.paid"]


@pytest.mark.parametrize(("moment", "action"), cases(SENDING))
def test_a_payout_is_sent_once_despite_a_fault_at_any_step(paying: Shop, moment: str, action: str) -> None:
    shop = paying
    shop.arm(SENDING[moment], action)
    payout = closed(shop)
    shop.service.wait_for_strike()
    # The lease of the claim ends.
    shop.later("3 minutes")
    shop.until(STATUS, payout, "sent")
    shop.later("6 days")
    paid_once(shop, payout)


@pytest.mark.parametrize(("moment", "action"), cases(PAYING))
def test_a_payout_is_recorded_as_paid_once_despite_a_fault_at_any_step(
    paying: Shop, moment: str, action: str
) -> None:
    shop = paying
    payout = closed(shop)
    shop.until(STATUS, payout, "sent")
    # End the payouts of earlier tests, so that none of them meets the fault.
    shop.books.rows("UPDATE payouts SET try_at = NULL WHERE status = 'paid'")
    shop.arm(PAYING[moment], action)
    shop.later("6 days")
    shop.service.wait_for_strike()
    shop.later("3 minutes")
    paid_once(shop, payout)
