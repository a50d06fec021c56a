"""`kill -9` at each step of a charge, at the simulated card processor and at the stand-in for Stripe.

The test reads the processor's own records: each payment is taken once, none is lost, and each refund is returned once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faults.card_processors import (
    ACTION,
    PAYS,
    Processor,
    SimulatedProcessor,
    complete,
    paid_once,
    simulated_shop,
    stripe_shop,
)
from support.faults.struck_shop import Shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

BEGIN, RECORD = "writes charges;", "writes charges_settled;"
SET_UP = {
    "before the card is set up": ("before", "call", "CardRails.keep"),
    "after the card is set up": ("after", "call", "CardRails.keep"),
}
CHARGE = {
    "after the attempt is written": ("after", "sql", BEGIN),
    "before the processor is asked": ("before", "call", "CardRails.charge"),
    "after the processor has answered": ("after", "call", "CardRails.charge"),
    "before the answer is recorded": ("before", "sql", RECORD),
    "after the answer is recorded": ("after", "sql", RECORD),
}
LOOK_UP = {
    "before the charge is looked up": ("before", "call", "CardRails.find_charge"),
    "after the charge is looked up": ("after", "call", "CardRails.find_charge"),
}
REFUND = {
    "before the refund is sent": ("before", "call", "CardRails.refund"),
    "after the refund is made": ("after", "call", "CardRails.refund"),
    "before the refund is recorded": ("before", "sql", "writes card_refunds_settled;"),
}
DUE = "SELECT charge_at FROM installments WHERE order_id = $1::text::uuid AND number = 2"
PAID = "SELECT charge_id IS NOT NULL FROM installments WHERE order_id = $1::text::uuid AND number = 2"
RETURNED = (
    "SELECT count(*) > 0 AND bool_and(state = 'succeeded') FROM card_refunds WHERE order_id = $1::text::uuid"
)
Side = tuple[Shop, Processor]


def only_in_long_runs(side: Side) -> None:
    """For the simulated processor, skip the cases that test_failpoints_checkout.py and test_strike_collection.py run
    anyway."""
    if isinstance(side[1], SimulatedProcessor) and not LONG:
        pytest.skip("a long run (make faults) strikes the simulated processor here too")


@pytest.fixture(scope="module", params=["simulated", "stripe"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    with simulated_shop() if request.param == "simulated" else stripe_shop() as made:
        yield made


def capture(shop: Shop, order_id: str) -> None:
    """Capture the whole order. Otherwise its authorization would end before the second installment."""
    whole = {"amount": "100.00", "merchantReference": "all"}
    assert shop.ask(f"/order/{order_id}/capture", whole).status_code == 200


@pytest.mark.parametrize("moment", SET_UP | CHARGE)
def test_a_first_payment_is_taken_once(side: Side, moment: str) -> None:
    if moment not in SET_UP:
        only_in_long_runs(side)
    shop, processor = side
    order = shop.order()
    shop.arm((SET_UP | CHARGE)[moment], "kill")
    complete(shop, processor, order, PAYS)
    shop.service.wait_for_strike()
    assert paid_once(shop, processor, order["orderId"]) == [(2500, 0)]


@pytest.mark.parametrize("moment", CHARGE | LOOK_UP)
def test_a_payment_that_is_confirmed_at_the_bank_is_taken_once(side: Side, moment: str) -> None:
    shop, processor = side
    order = shop.order()
    shop.arm((CHARGE | LOOK_UP)[moment], "kill")
    complete(shop, processor, order, ACTION)
    shop.service.wait_for_strike()
    assert paid_once(shop, processor, order["orderId"]) == [(2500, 0)]


@pytest.mark.parametrize("moment", CHARGE)
def test_a_later_installment_is_taken_once(side: Side, moment: str) -> None:
    only_in_long_runs(side)
    shop, processor = side
    order = shop.order()
    complete(shop, processor, order, PAYS)
    capture(shop, order["orderId"])
    shop.just_before(DUE, order["orderId"])
    shop.arm(CHARGE[moment], "kill")
    shop.later("2 minutes")
    shop.service.wait_for_strike()
    # The claim's lease ends, and a charge that got no answer is looked up.
    shop.later("2 minutes")
    shop.until(PAID, order["orderId"])
    assert paid_once(shop, processor, order["orderId"]) == [(2500, 0), (2500, 0)]


@pytest.mark.parametrize("moment", REFUND)
def test_a_refund_goes_back_to_the_card_once(side: Side, moment: str) -> None:
    shop, processor = side
    order = shop.order()
    complete(shop, processor, order, PAYS)
    capture(shop, order["orderId"])
    shop.arm(REFUND[moment], "kill")
    back = {"amount": "100.00", "merchantReference": "back"}
    # The kill may hit the worker that has not answered yet. The key makes the repeated request the same refund.
    made = shop.ask(f"/order/{order['orderId']}/refund", back, key=f"refund-{order['orderId']}")
    assert made.status_code == 200
    shop.service.wait_for_strike()
    shop.later("10 minutes")
    shop.until(RETURNED, order["orderId"])
    assert paid_once(shop, processor, order["orderId"]) == [(2500, 2500)]


def test_at_the_end_cuota_verify_finds_no_problem(side: Side) -> None:
    shop, _ = side
    shop.books.rows("UPDATE consumer_reservations SET expires_at = now()")
    shop.until("SELECT NOT EXISTS (SELECT FROM consumer_reservations)")
    shop.verified()
