"""A fault at each step of writing lines and closing a batch: each line and each payout exists exactly once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from support.faults.struck_shop import ACTIONS, Shop, struck_shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

LINING, CLOSING = "settle_movements(", "close_batch("
MOMENTS = {
    "before the cutoff is set": ("before", "sql", "UPDATE settlements SET close_at"),
    "after the cutoff is set": ("after", "sql", "UPDATE settlements SET close_at"),
    "before the line is written": ("before", "sql", LINING),
    "after the line is written": ("after", "sql", LINING),
    "before the batch is closed": ("before", "sql", CLOSING),
    "after the batch is closed": ("after", "sql", CLOSING),
}
# Combine each moment with a kill and with one other fault. `make faults` combines each moment with all faults.
STRIKES = [
    (moment, action)
    for number, moment in enumerate(MOMENTS)
    for action in ACTIONS
    if LONG or action in {"kill", ACTIONS[number % 3]}
]
NUMBERS = itertools.count(1)
ACCOUNT = """INSERT INTO bank_accounts SELECT merchant_id, gen_random_uuid(), '\\x00', '\\x00', '6789', now() - interval '1 day',
    now() FROM orders WHERE order_id = $1::text::uuid"""
CUTOFF = "SELECT close_at FROM settlements WHERE close_at IS NOT NULL"
LINED = "SELECT count(*) > 0 FROM settlement_lines WHERE order_id = $1::text::uuid"
OPEN = "SELECT close_at IS NOT NULL FROM settlements"
PAID = """SELECT count(*) > 0 FROM settlement_lines l JOIN payouts p ON p.merchant_id = l.merchant_id
    AND l.number BETWEEN p.first_line AND p.last_line WHERE l.order_id = $1::text::uuid"""
FOUND = """SELECT (SELECT count(*) FROM settlement_lines WHERE order_id = $1::text::uuid) AS lines,
    (SELECT count(*) FROM payouts) AS payouts, (SELECT sum(amount)::bigint FROM payouts) AS paid,
    (SELECT sum(amount)::bigint FROM merchant_transfers WHERE posting = 'payout') AS posted,
    (SELECT count(*) FROM events WHERE type = 'payout.created') AS told"""


@pytest.fixture(scope="module")
def settling() -> Iterator[Shop]:
    """A separate service, because these tests move its clock by days."""
    with struck_shop() as made:
        made.books.rows(ACCOUNT, made.completed())
        yield made


@pytest.mark.parametrize(("moment", "action"), STRIKES)
def test_a_capture_is_paid_once_despite_a_fault_at_any_step(settling: Shop, moment: str, action: str) -> None:
    shop, number = settling, next(NUMBERS)
    order = shop.completed()
    closing = MOMENTS[moment][2] == CLOSING
    if not closing:
        shop.arm(MOMENTS[moment], action)
    body = {"amount": "100.00", "merchantReference": f"all {number}"}
    # The fault may hit the worker that has not answered yet. The key makes the repeated request the same capture.
    assert shop.ask(f"/order/{order}/capture", body, key=f"capture-{order}").status_code == 200
    if not closing:
        shop.service.wait_for_strike()
    shop.until(LINED, order)
    shop.until(OPEN)
    shop.just_before(CUTOFF)
    if closing:
        shop.arm(MOMENTS[moment], action)
    shop.later("2 minutes")
    if closing:
        shop.service.wait_for_strike()
    shop.until(PAID, order)
    (found,) = shop.books.rows(FOUND, order)
    # Every earlier case has made one payout too.
    assert tuple(found.values()) == (1, number, number * 10000, number * 10000, number)


def test_after_all_faults_cuota_verify_finds_no_problem(settling: Shop) -> None:
    settling.verified()
    assert settling.service.run("books").returncode == 0
