"""core/order/capture: which captures are allowed, and what a capture changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.core.ledger import Account
from cuota.core.order.capture import capture
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Status
from cuota.core.refusal import Code, Refused
from support.core.values import MOVEMENT, NOW, approved, asked, created, held

END = NOW + timedelta(days=13)


def test_a_capture_raises_only_the_captured_amount() -> None:
    order = approved(10_000, voided=1000)
    outcome = capture(order, asked(MovementKind.CAPTURE, 3050), MOVEMENT, NOW)
    assert (outcome.order.captured, outcome.order.voided, outcome.order.refunded) == (3050, 1000, 0)
    assert (outcome.order.version, outcome.order.transfers, outcome.order.events) == (1, 0, 1)


def test_a_capture_never_changes_the_plan_or_a_card() -> None:
    outcome = capture(approved(), asked(MovementKind.CAPTURE, 10_000), MOVEMENT, NOW)
    assert outcome.installments == ()
    assert outcome.card_refunds == ()


def test_a_capture_records_its_movement_and_its_event() -> None:
    outcome = capture(approved(), asked(MovementKind.CAPTURE, 3050, "ship-1"), MOVEMENT, NOW)
    moved = outcome.movement
    assert moved is not None
    assert (moved.kind, moved.movement_id, moved.reference, moved.amount, moved.at) == (
        MovementKind.CAPTURE, MOVEMENT, "ship-1", 3050, NOW,
    )  # fmt: skip
    (event,) = outcome.events
    assert (event.type, event.amount, event.operation, event.reference, event.success) == (
        "capture.completed", 3050, "CaptureOrder", "ship-1", True,
    )  # fmt: skip


def test_a_capture_moves_its_amount_from_uncaptured_to_merchant_payable() -> None:
    outcome = capture(approved(), asked(MovementKind.CAPTURE, 3050), MOVEMENT, NOW)
    assert held(outcome.transfers) == {Account.AUTHORIZED_UNCAPTURED: 3050, Account.MERCHANT_PAYABLE: -3050}
    assert {transfer.cause for transfer in outcome.transfers} == {MOVEMENT}


def test_the_whole_uncaptured_amount_may_be_captured_and_not_a_cent_more() -> None:
    order = approved(10_000, captured=4000, voided=1000)
    assert capture(order, asked(MovementKind.CAPTURE, 5000), MOVEMENT, NOW).order.capturable == 0
    with pytest.raises(Refused) as caught:
        capture(order, asked(MovementKind.CAPTURE, 5001), MOVEMENT, NOW)
    assert caught.value.code is Code.CAPTURE_EXCEEDS_AUTHORIZED
    assert "50.00" in caught.value.message


def test_a_refusal_shows_the_balances_in_decimals() -> None:
    with pytest.raises(Refused) as caught:
        capture(approved(10_000, captured=9950), asked(MovementKind.CAPTURE, 51), MOVEMENT, NOW)
    shown = caught.value.facts["balances"]
    assert isinstance(shown, dict)
    assert {name: str(value) for name, value in shown.items()} == {
        "orderAmount": "100.00", "captured": "99.50", "voided": "0.00", "refunded": "0.00", "capturable": "0.50",
        "voidable": "0.50", "refundable": "99.50",
    }  # fmt: skip


@pytest.mark.parametrize("status", [Status.CREATED, Status.DECLINED, Status.ABANDONED])
def test_an_order_that_was_never_completed_is_not_captured(status: Status) -> None:
    with pytest.raises(Refused) as caught:
        capture(created(status=status), asked(MovementKind.CAPTURE, 1), MOVEMENT, NOW)
    assert caught.value.code is Code.ORDER_NOT_COMPLETED
    assert status in caught.value.message


def test_an_authorization_is_valid_until_its_end_but_not_at_that_moment() -> None:
    last = END - timedelta(microseconds=1)
    assert capture(approved(), asked(MovementKind.CAPTURE, 1), MOVEMENT, last).order.captured == 1
    with pytest.raises(Refused) as caught:
        capture(approved(), asked(MovementKind.CAPTURE, 1), MOVEMENT, END)
    assert caught.value.code is Code.AUTHORIZATION_EXPIRED


def test_while_a_chargeback_is_open_an_expired_authorization_is_not_said_to_be_released() -> None:
    with pytest.raises(Refused) as caught:
        capture(approved(open_chargebacks=1), asked(MovementKind.CAPTURE, 1), MOVEMENT, END)
    assert "is released when the chargeback is closed" in caught.value.message


def test_a_capture_after_the_service_voided_the_rest_is_still_refused_as_expired() -> None:
    released = approved(10_000, captured=4000, voided=6000, lapsed=True)
    with pytest.raises(Refused) as caught:
        capture(released, asked(MovementKind.CAPTURE, 1), MOVEMENT, END)
    assert caught.value.code is Code.AUTHORIZATION_EXPIRED


def test_a_fully_captured_order_refuses_another_capture_as_too_much_and_not_as_expired() -> None:
    with pytest.raises(Refused) as caught:
        capture(approved(10_000, captured=10_000), asked(MovementKind.CAPTURE, 1), MOVEMENT, END)
    assert caught.value.code is Code.CAPTURE_EXCEEDS_AUTHORIZED
