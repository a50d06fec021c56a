"""A fault at every step of every call that moves money: a repeated request gets one definite answer, with one effect."""

from __future__ import annotations

import itertools

import httpx
import pytest

from support.faults.served import ORDER
from support.faults.struck_shop import ACTIONS, Moment, Shop

pytestmark = pytest.mark.faults

READ = {"create": "INSERT INTO idempotency_keys AS k"}
SAVE = {"create": "create_orders("}
KINDS = ("capture", "void", "refund")
MOMENTS = {
    "before it is read": ("before", "sql", READ, "LEFT JOIN movements m"),
    "after it is read": ("after", "sql", READ, "LEFT JOIN movements m"),
    "before it is saved": ("before", "sql", SAVE, "save_orders("),
    "after it is committed and before it is answered": ("after", "sql", SAVE, "save_orders("),
    "before the answer is sent": ("before", "answer", {}, "POST /order"),
    "after the answer is sent": ("after", "answer", {}, "POST /order"),
}
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def orders(shop: Shop) -> dict[str, str]:
    """Return one order for each kind of movement, used for all faults. The order for refunds is already captured."""
    made = {kind: shop.completed() for kind in KINDS}
    whole = {"amount": "100.00", "merchantReference": "whole"}
    assert shop.ask(f"/order/{made['refund']}/capture", whole).status_code == 200
    return made


def moment_of(operation: str, moment: str) -> Moment:
    when, kind, special, what = MOMENTS[moment]
    return when, kind, special.get(operation, what)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("operation", KINDS)
def test_money_moves_once_despite_a_fault_at_any_step(
    shop: Shop, orders: dict[str, str], operation: str, moment: str, action: str
) -> None:
    order, number = orders[operation], next(NUMBERS)
    path, body = f"/order/{order}/{operation}", {"amount": "0.01", "merchantReference": f"struck {number}"}
    shop.arm(moment_of(operation, moment), action)
    answer = shop.ask(path, body, impatient=action == "hang")
    shop.service.wait_for_strike()
    original = first_told(answer)
    again = shop.ask(path, body)
    assert (again.status_code, again.json()["code"]) == (422, "duplicate_reference")
    assert again.json()["original"]["sameRequest"] is True
    assert (again.json()["original"]["amount"], again.json()["original"]["dateTime"]) == original
    applied_once(shop, order, operation, body["merchantReference"])


def first_told(answer: httpx.Response) -> tuple[float, str]:
    """Return amount and time of the movement, from the definite response or from the original that a duplicate names."""
    said = answer.json()
    if answer.status_code == 200:
        return said["amount"], said.get("dateTime") or said["refundedDateTime"]
    assert said["code"] == "duplicate_reference", answer.text
    assert said["original"]["sameRequest"] is True
    return said["original"]["amount"], said["original"]["dateTime"]


def applied_once(shop: Shop, order: str, kind: str, reference: str) -> None:
    """Check that there is one movement with one event, that event numbers have no gap, and that totals equal the movements."""
    (facts,) = shop.books.rows(
        """SELECT (SELECT count(*) FROM movements m WHERE m.order_id = o.order_id AND m.kind = $2
                AND m.reference = $3) AS moved,
            (SELECT count(*) FROM events e WHERE e.order_id = o.order_id AND e.type = $2 || '.completed'
                AND e.reference = $3) AS told,
            ARRAY(SELECT sequence FROM events e WHERE e.order_id = o.order_id ORDER BY sequence) AS numbers, o.events,
            (SELECT sum(amount)::bigint FROM movements m WHERE m.order_id = o.order_id AND m.kind = $2) AS total,
            CASE $2 WHEN 'capture' THEN captured WHEN 'void' THEN voided ELSE refunded END AS counted
        FROM orders o WHERE o.order_id = $1::text::uuid""",
        order,
        kind,
        reference,
    )
    assert (facts["moved"], facts["told"]) == (1, 1)
    assert facts["numbers"] == list(range(1, facts["events"] + 1))
    assert facts["total"] == facts["counted"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_order_is_created_once_despite_a_fault_at_any_step(shop: Shop, moment: str, action: str) -> None:
    number = next(NUMBERS)
    body, key = {**ORDER, "merchantReference": f"struck {number}"}, f"key {number}"
    shop.arm(moment_of("create", moment), action)
    answer = shop.ask("/order", body, impatient=action == "hang", key=key)
    shop.service.wait_for_strike()
    assert answer.status_code == 200, answer.text
    again = shop.ask("/order", body, key=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == answer.json()
    (found,) = shop.books.rows(
        """SELECT o.order_id, o.events, (SELECT count(*) FROM events e WHERE e.order_id = o.order_id) AS told
        FROM order_details d JOIN orders o USING (merchant_id, order_id) WHERE d.reference = $1""",
        body["merchantReference"],
    )
    assert (str(found["order_id"]), found["events"], found["told"]) == (answer.json()["orderId"], 1, 1)


def test_after_all_faults_cuota_verify_finds_no_problem_and_every_event_has_arrived_in_order(
    shop: Shop, orders: dict[str, str]
) -> None:
    # A killed worker's claim on a delivery ends with its lease. End it immediately.
    shop.later("1 minute")
    for order in orders.values():
        shop.told_in_order(order)
    shop.until("SELECT NOT EXISTS (SELECT FROM deliveries WHERE state <> 'delivered')")
    shop.verified()
