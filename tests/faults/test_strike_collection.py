"""A fault at each step of collecting an installment: the card is charged once, and the consumer gets one message."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faults.struck_shop import ACTIONS, Shop, struck_shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

BEGIN, RECORD = "writes charges;", "writes charges_settled;"
MOMENTS = {
    "before the attempt is written": ("before", "sql", BEGIN),
    "after the attempt is written and before the card is asked": ("after", "sql", BEGIN),
    "before the card is asked": ("before", "call", "SandboxCardRail.charge"),
    "after the card has paid and before that is recorded": ("after", "call", "SandboxCardRail.charge"),
    "before the payment is recorded": ("before", "sql", RECORD),
    "after the payment is recorded": ("after", "sql", RECORD),
    "after the receipt is claimed": ("after", "sql", "messages WHERE by_text = false"),
    "after the receipt is sent and before that is recorded": ("after", "call", "SandboxMessageRail.send"),
}
WHOLE = {"amount": "100.00"}
REMIND = "SELECT remind_at FROM installments WHERE order_id = $1::text::uuid AND number = 2"
DUE = "SELECT charge_at FROM installments WHERE order_id = $1::text::uuid AND number = 2"
PAID = "SELECT charge_id IS NOT NULL FROM installments WHERE order_id = $1::text::uuid AND number = 2"
REMINDED = "SELECT count(*) = 1 FROM messages WHERE order_id = $1::text::uuid AND kind = 'reminder' AND state = 'sent'"
ON_THE_CARD = """SELECT count(*) FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key
    WHERE c.order_id = $1::text::uuid AND c.installment = 2 AND s.approved"""
UNKNOWN = """SELECT count(*) FROM card_simulator.charges s WHERE NOT EXISTS (
    SELECT FROM charges c WHERE c.charge_id = s.key)"""
RECEIPTS = """SELECT count(*) = 1 FROM message_simulator.inbox i JOIN messages m ON m.message_id = i.key
    WHERE m.order_id = $1::text::uuid AND m.kind = 'payment_received' AND m.state = 'sent' AND i.channel = 'mail'"""


# Combine each moment with a kill and with one other fault. `make faults` combines each moment with all faults.
STRIKES = [
    (moment, action)
    for number, moment in enumerate(MOMENTS)
    for action in ACTIONS
    if LONG or action in {"kill", ACTIONS[number % 3]}
]


@pytest.fixture(scope="module")
def collecting() -> Iterator[Shop]:
    """A separate service, because these tests move its clock by weeks."""
    with struck_shop() as made:
        yield made


@pytest.mark.parametrize(("moment", "action"), STRIKES)
def test_an_installment_is_charged_once_despite_a_fault_at_any_step(
    collecting: Shop, moment: str, action: str
) -> None:
    shop = collecting
    order = shop.completed()
    assert shop.ask(f"/order/{order}/capture", {**WHOLE, "merchantReference": "all"}).status_code == 200
    # Wait until the reminders are sent, so that the fault hits the payment.
    shop.just_before(REMIND, order)
    shop.later("2 minutes")
    shop.until(REMINDED, order)
    shop.just_before(DUE, order)
    shop.arm(MOMENTS[moment], action)
    shop.later("2 minutes")
    if "receipt" in moment:
        # The card is charged at midnight. The receipt is sent in the morning.
        shop.until(PAID, order)
        shop.later("10 hours")
    shop.service.wait_for_strike()
    # Skip two minutes: the claim's lease ends, and the service looks up a charge that got no answer.
    shop.later("2 minutes")
    shop.until(PAID, order)
    if "receipt" not in moment:
        shop.later("10 hours")
    shop.until(RECEIPTS, order)
    assert shop.books.one(ON_THE_CARD, order) == 1
    assert shop.books.one(UNKNOWN) == 0
    # Refund the order, so that nothing is left to collect. The next case uses its own order.
    assert shop.ask(f"/order/{order}/refund", {**WHOLE, "merchantReference": "back"}).status_code == 200


def test_after_all_faults_cuota_verify_finds_no_problem(collecting: Shop) -> None:
    collecting.verified()
