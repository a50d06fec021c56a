"""A fault at each step of a write-off: the installment is written off once, in the ledger and in the plan."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faults.struck_shop import ACTIONS, Shop, struck_shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

MARK = "UPDATE installments SET written_off_at"
MOMENTS = {
    "before what is due is read": ("before", "sql", "SELECT DISTINCT merchant_id FROM installments"),
    "after what is due is read": ("after", "sql", "SELECT DISTINCT order_id FROM installments"),
    "between the ledger and the mark": ("before", "sql", MARK),
    "after the mark and before the commit": ("after", "sql", MARK),
}
STRIKES = [(moment, action) for moment in MOMENTS for action in ACTIONS if LONG or action == "kill"]
# Change the plan as if the last retry of the card had failed long ago.
OVERDUE = """WITH plan AS (UPDATE installments SET failures = 6, charge_at = NULL, remind_at = NULL
        WHERE order_id = $1::text::uuid AND number > 1)
    UPDATE orders SET collect_at = NULL, due_at = NULL, version = version + 1 WHERE order_id = $1::text::uuid"""
DUE = "SELECT (due_on + 120 + time '12:00') AT TIME ZONE 'UTC' FROM installments WHERE order_id = $1::text::uuid AND number = 4"
MARKED = (
    "SELECT count(*) = 3 FROM installments WHERE order_id = $1::text::uuid AND written_off_at IS NOT NULL"
)
POSTED = "SELECT coalesce(sum(amount), 0)::bigint FROM transfers WHERE order_id = $1::text::uuid AND posting = 'write_off'"


@pytest.fixture(scope="module")
def losing() -> Iterator[Shop]:
    """A separate service, because these tests move its clock by months."""
    with struck_shop() as made:
        yield made


@pytest.mark.parametrize(("moment", "action"), STRIKES)
def test_an_installment_is_written_off_once_despite_a_fault_at_any_step(
    losing: Shop, moment: str, action: str
) -> None:
    shop = losing
    order = shop.completed()
    body = {"amount": "100.00", "merchantReference": "all"}
    assert shop.ask(f"/order/{order}/capture", body).status_code == 200
    shop.books.rows(OVERDUE, order)
    shop.just_before(DUE, order)
    shop.arm(MOMENTS[moment], action)
    shop.later("2 minutes")
    shop.service.wait_for_strike()
    shop.until(MARKED, order)
    assert shop.books.one(POSTED, order) == 7500


def test_after_all_faults_cuota_verify_finds_no_problem(losing: Shop) -> None:
    losing.verified()
    assert losing.service.run("books").returncode == 0
