"""core/order/refund: a refund first reduces the unpaid installments, then goes back to the cards. Some tests are worked
examples."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cuota.core.installment import Installment
from cuota.core.ledger import Account
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.order.refund import refund
from cuota.core.order.void import void
from cuota.core.refusal import Code, Refused
from support.core.values import (
    MOVEMENT,
    NOW,
    after,
    approved,
    asked,
    charge_id,
    created,
    held,
    ids,
    plan,
    to_cards,
)


def _captured(amount: int, fee: int = 0) -> Order:
    return approved(amount, fee, captured=amount)


def _refund(order: Order, agreed: list[Installment], amount: int) -> Outcome:
    return refund(order, agreed, asked(MovementKind.REFUND, amount), MOVEMENT, NOW, ids())


def _amounts(agreed: list[Installment], outcome: Outcome) -> list[int]:
    return [item.amount for item in after(agreed, outcome)]


def test_example_200_with_one_paid_refund_160_cancels_three_and_returns_10() -> None:
    agreed = plan(20_000, paid=(1,))
    outcome = _refund(_captured(20_000), agreed, 16_000)
    assert [item.state for item in after(agreed, outcome)] == ["paid", "cancelled", "cancelled", "cancelled"]
    assert to_cards(outcome) == {charge_id(1): 1000}


def test_example_100_with_one_paid_refund_100_returns_25() -> None:
    agreed = plan(10_000, paid=(1,))
    outcome = _refund(_captured(10_000), agreed, 10_000)
    assert _amounts(agreed, outcome) == [0, 0, 0, 0]
    assert to_cards(outcome) == {charge_id(1): 2500}


def test_example_500_40_with_two_paid_refund_143_10_leaves_the_third_at_107_10() -> None:
    agreed = plan(50_040, paid=(1, 2))
    outcome = _refund(_captured(50_040), agreed, 14_310)
    assert _amounts(agreed, outcome) == [12_510, 12_510, 10_710, 0]
    assert [item.state for item in after(agreed, outcome)] == ["paid", "paid", "scheduled", "cancelled"]
    assert to_cards(outcome) == {}


def test_example_200_with_a_fee_of_8_returns_the_fee_pro_rata() -> None:
    agreed = plan(20_000, 800, paid=(1,))
    outcome = _refund(_captured(20_000, 800), agreed, 16_000)
    # 80 % of the order takes 6.40 of the fee: 6.00 are unpaid, and 0.40 were paid with the first installment.
    assert outcome.order.fee_returned == 640
    assert [(item.amount, item.fee) for item in after(agreed, outcome)] == [
        (4000, 160),
        (0, 0),
        (0, 0),
        (0, 0),
    ]
    assert to_cards(outcome) == {charge_id(1): 1040}


def test_example_100_with_a_fee_of_4_returns_the_whole_fee() -> None:
    agreed = plan(10_000, 400, paid=(1,))
    outcome = _refund(_captured(10_000, 400), agreed, 10_000)
    assert outcome.order.fee_returned == 400
    assert to_cards(outcome) == {charge_id(1): 2600}
    assert sum(item.total for item in after(agreed, outcome)) == 0


def test_example_500_40_with_a_fee_of_20_cuts_the_fee_from_the_last_installment_too() -> None:
    agreed = plan(50_040, 2000, paid=(1, 2))
    outcome = _refund(_captured(50_040, 2000), agreed, 14_310)
    # 14310 * 2000 / 50040 = 571.94, so 5.72 of the fee. The fourth installment had 5.00 of it.
    assert outcome.order.fee_returned == 572
    fees = [item.fee for item in after(agreed, outcome)]
    assert fees == [500, 500, 428, 0]
    assert to_cards(outcome) == {}


def test_many_small_refunds_return_the_same_fee_as_one_large_one() -> None:
    order, agreed = _captured(10_003, 333), plan(10_003, 333)
    returned = 0
    for amount in (1, 3333, 10, 2222, 4437):
        outcome = _refund(order, agreed, amount)
        order, agreed = outcome.order, after(agreed, outcome)
        returned += sum(to_cards(outcome).values())
    whole = _refund(_captured(10_003, 333), plan(10_003, 333), 10_003)
    assert order == whole.order
    assert agreed == after(plan(10_003, 333), whole)
    assert returned == sum(to_cards(whole).values())


def test_a_refund_is_limited_by_the_captured_amount_and_not_by_the_order_s_amount() -> None:
    order = approved(10_000, captured=4000, refunded=1000)
    assert _refund(order, plan(9000), 3000).order.refundable == 0
    with pytest.raises(Refused) as caught:
        _refund(order, plan(9000), 3001)
    assert caught.value.code is Code.REFUND_EXCEEDS_CAPTURED
    assert "30.00" in caught.value.message
    assert "balances" in caught.value.facts


def test_a_refund_does_not_make_anything_capturable_again() -> None:
    assert _refund(approved(10_000, captured=4000), plan(), 4000).order.capturable == 6000


def test_a_refund_reduces_the_amount_owed_to_the_merchant() -> None:
    outcome = _refund(_captured(10_000, 400), plan(10_000, 400), 9000)
    assert held(outcome.transfers) == {
        Account.MERCHANT_PAYABLE: 9000, Account.PLAN_FEES: 360,
        Account.CONSUMER_RECEIVABLE: -7800, Account.CONSUMER_REFUND_DUE: -1560,
    }  # fmt: skip


def test_a_refund_records_its_event_and_its_movement() -> None:
    outcome = _refund(_captured(10_000), plan(), 500)
    (event,) = outcome.events
    assert (event.type, event.amount, event.operation, event.reference) == (
        "refund.completed", 500, "RefundOrder", "ref-1",
    )  # fmt: skip
    assert outcome.movement is not None
    assert (outcome.movement.kind, outcome.movement.amount) == (MovementKind.REFUND, 500)


def test_a_refund_goes_to_the_cards_that_paid_latest_first() -> None:
    outcome = _refund(_captured(10_000), plan(paid=(1, 2, 3, 4)), 6000)
    assert to_cards(outcome) == {charge_id(4): 2500, charge_id(3): 2500, charge_id(2): 1000}
    assert len({item.card_refund_id for item in outcome.card_refunds}) == 3


@pytest.mark.parametrize("status", [Status.CREATED, Status.DECLINED, Status.ABANDONED])
def test_an_order_that_was_never_completed_is_not_refunded(status: Status) -> None:
    with pytest.raises(Refused) as caught:
        _refund(created(status=status), [], 1)
    assert caught.value.code is Code.ORDER_NOT_COMPLETED


def test_a_refund_is_possible_after_the_authorization_has_ended() -> None:
    late = NOW + timedelta(days=300)
    order = replace(_captured(10_000), lapsed=True)
    outcome = refund(order, plan(), asked(MovementKind.REFUND, 1), MOVEMENT, late, ids())
    assert outcome.order.refunded == 1


def test_the_returned_fee_is_computed_from_the_sum_of_all_voids_and_refunds() -> None:
    order, agreed = approved(10_000, 333, captured=5000), plan(10_000, 333)
    voided = void(order, agreed, asked(MovementKind.VOID, 3333), MOVEMENT, NOW, ids())
    assert voided.order.fee_returned == 111
    # Voids and refunds are now 8333 of 10000, so 277 of the fee of 333 are returned: 166 more. The second 5000 alone
    # would give 167.
    refunded = _refund(voided.order, after(agreed, voided), 5000)
    assert refunded.order.fee_returned == 277
