"""`kill -9` at each step of collecting an installment: it is charged once, and the consumer is told once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import free_port, service, until
from struck import StruckService, World, receiver, world_of

pytestmark = pytest.mark.faults

BEGIN, RECORD = "INSERT INTO charges", "UPDATE charges c"
MOMENTS = {
    "before the attempt is written": ("before", "sql", BEGIN),
    "after the attempt is written and before the card is asked": ("after", "sql", BEGIN),
    "before the card is asked": ("before", "call", "SandboxCardRail.charge"),
    "after the card has paid and before that is recorded": ("after", "call", "SandboxCardRail.charge"),
    "before the payment is recorded": ("before", "sql", RECORD),
    "after the payment is recorded": ("after", "sql", RECORD),
    "after the receipt is claimed": ("after", "sql", "UPDATE messages m"),
    "after the receipt is sent and before that is recorded": ("after", "call", "SandboxMessageRail.send"),
}
DUE = "SELECT charge_at FROM installments WHERE order_id = $1::text::uuid AND number = 2"
PAID = "SELECT charge_id IS NOT NULL FROM installments WHERE order_id = $1::text::uuid AND number = 2"
REMINDED = (
    "SELECT count(*) FROM messages WHERE order_id = $1::text::uuid AND kind = 'reminder' AND state = 'sent'"
)
ON_THE_CARD = """SELECT count(*) FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key
    WHERE c.order_id = $1::text::uuid AND c.installment = 2 AND s.approved"""
UNKNOWN = """SELECT count(*) FROM card_simulator.charges s WHERE NOT EXISTS (
    SELECT FROM charges c WHERE c.charge_id = s.key)"""
RECEIPTS = """SELECT count(*) FROM message_simulator.inbox i JOIN messages m ON m.message_id = i.key
    WHERE m.order_id = $1::text::uuid AND m.kind = 'payment_received' AND m.state = 'sent' AND i.channel = 'mail'"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with service() as plain, receiver() as hooks:
        served = StruckService(plain.data, free_port())
        try:
            served.start()
            yield world_of(served, hooks)
        finally:
            served.stop()


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_installment_is_charged_once_whatever_dies_at_that_moment(world: World, moment: str) -> None:
    order = world.approved()
    body = {"amount": "100.00", "merchantReference": "all of it"}
    assert world.call("POST", f"/order/{order}/capture", json=body).status_code == 200
    # The reminders are given before: what is struck at is the payment's own.
    world.just_before(DUE, order)
    until(lambda: world.ask(REMINDED, order) == 1)
    world.service.arm(*MOMENTS[moment])
    world.later("2 minutes")
    if "receipt" in moment:
        # Charged at midnight, told in the morning.
        until(lambda: world.ask(PAID, order), 30)
        world.later("10 hours")
    world.service.wait_for_strike()
    # A claim's lease ends, and a charge without an answer is looked up: minutes pass at once here.
    world.later("2 minutes")
    until(lambda: world.ask(PAID, order), 30)
    if "receipt" not in moment:
        world.later("10 hours")
    until(lambda: world.ask(RECEIPTS, order) == 1, 30)
    assert world.ask(ON_THE_CARD, order) == 1
    assert world.ask(UNKNOWN) == 0
    assert world.service.run("verify").returncode == 0
    # Nothing is left to collect of it: the next moment is struck at by its own order.
    whole = {"amount": "100.00", "merchantReference": "back"}
    assert world.call("POST", f"/order/{order}/refund", json=whole).status_code == 200
