"""A fault at every step of pressing the checkout's button: the card pays once, and the order is approved once."""

from __future__ import annotations

import pytest

from support.faults.struck_shop import ACTIONS, HANG_SECONDS, Shop

pytestmark = pytest.mark.faults

BEGIN, END = "writes charges;", "writes charges_settled;"
MOMENTS = {
    "before the limit is reserved": ("before", "sql", "reserve_exposure("),
    "after the limit is reserved": ("after", "sql", "reserve_exposure("),
    "before the history is read": ("before", "sql", "AS charging, declined.orders"),
    "before the attempt is written": ("before", "sql", BEGIN),
    "after the attempt is written": ("after", "sql", BEGIN),
    "before the reservation is deleted": ("before", "sql", "finish_reservation("),
    "after the reservation is deleted": ("after", "sql", "finish_reservation("),
    "before the card is asked": ("before", "call", "SandboxCardRail.charge"),
    "after the card has paid and before that is saved": ("after", "call", "SandboxCardRail.charge"),
    "before the approval is saved": ("before", "sql", END),
    "after the approval is committed and before it is answered": ("after", "sql", END),
    "before the answer is sent": ("before", "answer", "/pay"),
    "after the answer is sent": ("after", "answer", "/pay"),
}
FACTS = """SELECT o.status, o.events, o.charging,
    ARRAY(SELECT sequence FROM events e WHERE e.order_id = o.order_id ORDER BY sequence) AS numbers,
    (SELECT count(*) FROM events e WHERE e.order_id = o.order_id AND e.type = 'order.approved') AS told,
    (SELECT count(*) FROM charges c JOIN card_simulator.charges s ON s.key = c.charge_id
        WHERE c.order_id = o.order_id AND s.approved) AS paid,
    (SELECT sum(amount)::bigint FROM installments i WHERE i.order_id = o.order_id) AS planned,
    (SELECT count(*) FROM card_simulator.charges s WHERE NOT EXISTS (
        SELECT FROM charges c WHERE c.charge_id = s.key)) AS unknown
FROM orders o WHERE o.order_id = $1::text::uuid"""


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_consumer_pays_once_despite_a_fault_at_any_step(shop: Shop, moment: str, action: str) -> None:
    order = shop.order()
    shop.service.arm(*MOMENTS[moment], action, HANG_SECONDS)
    # If a page fails, the consumer opens the checkout again, in a new session if necessary, until the order is final.
    assert shop.completed(order) == order["orderId"]
    shop.service.wait_for_strike()
    (facts,) = shop.books.rows(FACTS, order["orderId"])
    assert (facts["status"], facts["charging"], facts["told"], facts["paid"]) == ("Approved", None, 1, 1)
    assert facts["numbers"] == list(range(1, facts["events"] + 1))
    assert (facts["planned"], facts["unknown"]) == (10000, 0)


def test_after_all_faults_no_reservation_is_left_and_cuota_verify_finds_no_problem(shop: Shop) -> None:
    # Killed workers and lost connections have left reservations. They expire after a while. Let them expire immediately.
    shop.books.rows("UPDATE consumer_reservations SET expires_at = now()")
    shop.until("SELECT NOT EXISTS (SELECT FROM consumer_reservations)")
    shop.verified()
