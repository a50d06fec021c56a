"""core/order/void: the merchant voids an uncaptured amount, or the service voids it when the authorization ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cuota.core.installment import total
from cuota.core.ledger import Account
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order, PaymentState, Status
from cuota.core.order.outcome import Outcome
from cuota.core.order.void import lapse, void, warn
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

END = NOW + timedelta(days=13)


def _void(order: Order, amount: int, at: int = 0) -> Outcome:
    agreed = plan(order.amount, order.fee)
    return void(order, agreed, asked(MovementKind.VOID, amount), MOVEMENT, NOW + timedelta(days=at), ids())


def test_a_void_lowers_the_order_and_cuts_the_plan_from_its_end() -> None:
    outcome = _void(approved(10_000), 3000)
    assert (outcome.order.voided, outcome.order.capturable, outcome.order.refunded) == (3000, 7000, 0)
    assert [item.amount for item in after(plan(), outcome)] == [2500, 2500, 2000, 0]
    assert outcome.card_refunds == ()


def test_only_the_installments_that_change_are_written() -> None:
    assert [item.number for item in _void(approved(10_000), 3000).installments] == [3, 4]


def test_voiding_everything_sends_the_first_installment_back() -> None:
    outcome = _void(approved(10_000, 400), 10_000)
    assert outcome.order.payment_state is PaymentState.VOIDED
    assert outcome.order.fee_returned == 400
    assert to_cards(outcome) == {charge_id(1): 2600}
    assert total(after(plan(10_000, 400), outcome)) == 0


def test_a_void_reduces_the_uncaptured_amount_and_not_the_amount_owed_to_the_merchant() -> None:
    outcome = _void(approved(10_000, 400), 9000)
    assert held(outcome.transfers) == {
        Account.AUTHORIZED_UNCAPTURED: 9000, Account.PLAN_FEES: 360,
        Account.CONSUMER_RECEIVABLE: -7800, Account.CONSUMER_REFUND_DUE: -1560,
    }  # fmt: skip


def test_a_void_records_its_event() -> None:
    (event,) = _void(approved(), 3000).events
    assert (event.type, event.amount, event.operation, event.reference) == (
        "void.completed", 3000, "VoidOrder", "ref-1",
    )  # fmt: skip


def test_the_whole_uncaptured_amount_may_be_voided_and_not_a_cent_more() -> None:
    order = approved(10_000, captured=4000, voided=1000)
    agreed = plan(9000)
    done = void(order, agreed, asked(MovementKind.VOID, 5000), MOVEMENT, NOW, ids())
    assert done.order.payment_state is PaymentState.CAPTURED
    with pytest.raises(Refused) as caught:
        void(order, agreed, asked(MovementKind.VOID, 5001), MOVEMENT, NOW, ids())
    assert caught.value.code is Code.VOID_EXCEEDS_UNCAPTURED
    assert "balances" in caught.value.facts


@pytest.mark.parametrize("status", [Status.CREATED, Status.DECLINED, Status.ABANDONED])
def test_an_order_that_was_never_completed_is_not_voided(status: Status) -> None:
    with pytest.raises(Refused) as caught:
        void(created(status=status), [], asked(MovementKind.VOID, 1), MOVEMENT, NOW, ids())
    assert caught.value.code is Code.ORDER_NOT_COMPLETED


def test_after_the_end_of_the_authorization_only_the_service_voids() -> None:
    with pytest.raises(Refused) as caught:
        _void(approved(), 1, at=13)
    assert caught.value.code is Code.AUTHORIZATION_EXPIRED


def test_the_end_of_an_authorization_voids_the_uncaptured_rest() -> None:
    outcome = lapse(approved(10_000, captured=4000), plan(), MOVEMENT, END, ids())
    assert outcome is not None
    assert (outcome.order.voided, outcome.order.capturable, outcome.order.lapsed) == (6000, 0, True)
    assert outcome.order.payment_state is PaymentState.CAPTURED
    assert [item.amount for item in after(plan(), outcome)] == [2500, 1500, 0, 0]
    assert {transfer.posting for transfer in outcome.transfers} == {"expiry"}


def test_an_authorization_that_ends_with_nothing_captured_is_expired() -> None:
    outcome = lapse(approved(10_000, voided=500), plan(9500), MOVEMENT, END, ids())
    assert outcome is not None
    assert outcome.order.payment_state is PaymentState.EXPIRED
    assert to_cards(outcome) == {charge_id(1): 2375}


def test_the_end_of_an_authorization_has_its_own_event() -> None:
    outcome = lapse(approved(10_000, captured=4000), plan(), MOVEMENT, END, ids())
    assert outcome is not None
    (event,) = outcome.events
    assert (event.type, event.amount, event.operation) == ("authorization.expired", 6000, "VoidOrder")


def test_the_void_by_the_service_has_a_valid_reference_of_a_movement() -> None:
    outcome = lapse(approved(), plan(), MOVEMENT, END, ids())
    assert outcome is not None
    assert outcome.movement is not None
    assert 1 <= len(outcome.movement.reference) <= 100
    assert str(MOVEMENT) in outcome.movement.reference


@pytest.mark.parametrize(
    ("order", "days"),
    [
        (approved(), 12.999),
        (approved(captured=10_000), 13),
        (approved(captured=4000, voided=6000), 13),
        (created(), 13),
        (created(status=Status.DECLINED), 13),
        (approved(auto_capture=True, captured=10_000, authorization_expires_at=None), 20),
    ],
)
def test_an_authorization_does_not_end_early_or_twice_or_without_an_uncaptured_amount(
    order: Order, days: float
) -> None:
    assert lapse(order, plan(), MOVEMENT, NOW + timedelta(days=days), ids()) is None


def _warned(left: timedelta, before: int = 0) -> tuple[int, str] | None:
    """Return how many warnings count as sent, and the message of the warning that is sent now, if one is."""
    order = replace(approved(10_000), authorization_expires_at=END, warned=before)
    outcome = warn(order, END - left)
    return None if outcome is None else (outcome.order.warned, outcome.events[0].message or "")


@pytest.mark.parametrize(
    ("left", "warned", "words"),
    [
        (timedelta(hours=72), 1, "ends in 72 hours;"),
        (timedelta(hours=72) - timedelta(minutes=2), 1, "ends in 72 hours;"),
        (timedelta(hours=50, minutes=30), 1, "ends in 50 hours;"),
        (timedelta(hours=24), 2, "ends in 24 hours;"),
        (timedelta(hours=3), 2, "ends in 3 hours;"),
        (timedelta(hours=1, minutes=20), 2, "ends in 1 hour;"),
        (timedelta(minutes=20), 2, "ends in less than an hour;"),
    ],
)
def test_a_warning_says_how_much_time_is_left_and_replaces_the_warnings_that_it_overtakes(
    left: timedelta, warned: int, words: str
) -> None:
    found = _warned(left)
    assert found is not None
    assert found[0] == warned
    assert words in found[1]


def test_no_warning_is_sent_early_twice_or_after_the_end() -> None:
    assert _warned(timedelta(hours=73)) is None
    assert _warned(timedelta(hours=25), before=1) is None
    assert _warned(timedelta(hours=3), before=2) is None
    assert _warned(timedelta(0)) is None
