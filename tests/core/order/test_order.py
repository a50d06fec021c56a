"""core/order/order: the table of edges, the derived totals, the payment state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.order.order import EDGES, LOOK_UP_AFTER, Final, PaymentState, Status, balances, edge
from support.core.values import NOW, approved, created

MOVES = ("approve", "decline", "reject", "leave", "lapse")


def test_there_are_four_order_states_and_never_a_fifth() -> None:
    assert [status.value for status in Status] == ["Created", "Approved", "Declined", "Abandoned"]


@pytest.mark.parametrize(
    ("move", "after", "event"),
    [
        ("approve", "Approved", "order.approved"),
        ("decline", "Declined", "order.declined"),
        ("leave", "Abandoned", "order.abandoned"),
        ("lapse", "Abandoned", "order.abandoned"),
    ],
)
def test_each_move_of_a_created_order_has_the_expected_status_and_event(
    move: str, after: str, event: str
) -> None:
    found = edge(Status.CREATED, move)
    assert (found.after, found.event) == (after, event)


@pytest.mark.parametrize("before", [Status.APPROVED, Status.DECLINED, Status.ABANDONED])
@pytest.mark.parametrize("move", MOVES)
def test_no_transition_leaves_a_final_state(before: Status, move: str) -> None:
    with pytest.raises(Final) as caught:
        edge(before, move)
    assert caught.value.status is before


def test_the_table_has_no_other_edges_and_each_edge_has_a_meaning() -> None:
    assert [(item.before, item.move) for item in EDGES] == [(Status.CREATED, move) for move in MOVES]
    assert all(item.meaning for item in EDGES)


@pytest.mark.parametrize(
    ("totals", "capturable", "refundable", "state"),
    [
        ({}, 10_000, 0, "AUTHORIZED"),
        ({"captured": 1}, 9999, 1, "PARTIALLY_CAPTURED"),
        ({"captured": 10_000}, 0, 10_000, "CAPTURED"),
        ({"captured": 10_000, "refunded": 10_000}, 0, 0, "CAPTURED"),
        ({"captured": 4000, "refunded": 1500}, 6000, 2500, "PARTIALLY_CAPTURED"),
        ({"captured": 4000, "voided": 6000}, 0, 4000, "CAPTURED"),
        ({"voided": 4000}, 6000, 0, "AUTHORIZED"),
        ({"voided": 10_000}, 0, 0, "VOIDED"),
        ({"voided": 10_000, "lapsed": True}, 0, 0, "EXPIRED"),
        ({"captured": 4000, "voided": 6000, "lapsed": True}, 0, 4000, "CAPTURED"),
    ],
)
def test_the_limits_and_the_payment_state_are_computed_from_the_totals(
    totals: dict[str, int], capturable: int, refundable: int, state: str
) -> None:
    order = approved(10_000, **totals)
    assert (order.capturable, order.refundable, order.payment_state) == (capturable, refundable, state)


@pytest.mark.parametrize("status", [Status.CREATED, Status.DECLINED, Status.ABANDONED])
def test_an_order_that_is_not_approved_has_no_money_to_move(status: Status) -> None:
    order = created(10_000, status=status)
    assert (order.capturable, order.refundable, order.payment_state) == (0, 0, PaymentState.NONE)


def test_balances_have_the_names_that_merchants_read() -> None:
    order = approved(10_000, captured=4000, voided=1000, refunded=500)
    assert balances(order) == {
        "orderAmount": 9000, "captured": 4000, "voided": 1000, "refunded": 500, "capturable": 5000,
        "voidable": 5000, "refundable": 3500,
    }  # fmt: skip


def test_a_created_order_is_due_when_it_expires() -> None:
    assert created().due_at == NOW + timedelta(hours=1)


def test_an_order_is_due_when_its_charge_without_an_answer_must_be_looked_up() -> None:
    order = created(charging=UUID(int=7), charging_since=NOW)
    assert order.due_at == NOW + LOOK_UP_AFTER


def test_an_approved_order_with_an_uncaptured_amount_is_due_at_each_warning_and_at_the_authorization_s_end() -> (
    None
):
    order = approved()
    ends_at = NOW + timedelta(days=13)
    for warned, ahead in ((0, 72), (1, 24), (2, 0)):
        assert replace(order, warned=warned).due_at == ends_at - timedelta(hours=ahead)
    assert replace(order, captured=4000, voided=6000).due_at is None


@pytest.mark.parametrize("status", [Status.DECLINED, Status.ABANDONED])
def test_an_order_that_ended_without_a_payment_is_never_due(status: Status) -> None:
    assert created(status=status).due_at is None
