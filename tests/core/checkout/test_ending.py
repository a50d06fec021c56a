"""core/checkout/ending: how a checkout is approved, declined, canceled or timed out.

While a card is being charged, none of this can happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.checkout import ending as checkout
from cuota.core.checkout.ending import Charging, Lapsed
from cuota.core.installment import schedule
from cuota.core.ledger import Account
from cuota.core.order.job import JobState, Settled
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Final, Order, PaymentState, Status
from cuota.core.order.outcome import Outcome
from cuota.core.plan.charge import Charge
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.plan import Plan
from cuota.core.risk.decision import Decision, StoredDecision
from support.core.values import MOVEMENT, NOW, ORDER, PROFILE, TODAY, created, held, plan

CHARGE = UUID(int=101)
YES = StoredDecision(UUID(int=31), UUID(int=32), Decision(True, ("within_limit",), "v", {}, 600, 200_000))
NO = StoredDecision(UUID(int=33), UUID(int=32), Decision(False, ("over_limit",), "v", {}, 600, 5_000))
LETTER = Notice(UUID(int=34), NoticeKind.DECLINED, 1, 10_000, NOW.date(), NOW)
TOLD = Notice(UUID(int=60), NoticeKind.PLAN_STARTED, 1, 2500, TODAY, NOW)
AGREED = Plan(
    UUID(int=50), PROFILE, "2125550123", "America/New_York", TODAY, "the agreement", "its hash", NOW
)
FINAL = (Status.APPROVED, Status.DECLINED, Status.ABANDONED)


def _charge(charge_id: UUID = CHARGE) -> Charge:
    return Charge(charge_id, 1, 2500, "USD", "card_token", "visa", "4242")


def _charging(**more: object) -> Order:
    return created(**{"charging": CHARGE, "charging_since": NOW, **more})  # type: ignore[arg-type]


def _approve(order: Order) -> Outcome:
    paid = plan(order.amount, order.fee)
    return checkout.approve(order, paid, Settled(CHARGE, JobState.SUCCEEDED), MOVEMENT, TOLD, NOW, 13)


def _fail(order: Order) -> Outcome:
    assert order.charging is not None
    return checkout.card_failed(order, Settled(order.charging, JobState.FAILED, "card_declined"), NOW)


def test_the_start_of_a_charge_records_it_and_moves_no_money() -> None:
    outcome = checkout.begin(created(), AGREED, _charge(), YES, NOW)
    assert (outcome.order.charging, outcome.order.charging_since) == (CHARGE, NOW)
    assert outcome.order.status is Status.CREATED
    assert (outcome.plan, outcome.charge, outcome.decision) == (AGREED, _charge(), YES)
    assert (outcome.transfers, outcome.events, outcome.installments) == ((), (), ())


def test_approval_starts_the_plan_with_its_first_installment_paid() -> None:
    outcome = _approve(_charging())
    assert outcome.order.status is Status.APPROVED
    assert [item.state for item in outcome.installments] == ["paid", "scheduled", "scheduled", "scheduled"]
    assert outcome.charge_settled == Settled(CHARGE, JobState.SUCCEEDED)
    assert (outcome.order.charging, outcome.order.charging_since) == (None, None)


def test_approval_with_delayed_capture_authorizes_for_the_configured_days() -> None:
    outcome = _approve(_charging())
    assert outcome.order.payment_state is PaymentState.AUTHORIZED
    assert outcome.order.authorization_expires_at == NOW + timedelta(days=13)
    assert outcome.movement is None
    assert [event.type for event in outcome.events] == ["order.approved"]


def test_approval_posts_the_receivable_the_uncaptured_amount_and_the_first_payment() -> None:
    outcome = _approve(_charging(fee=400))
    assert held(outcome.transfers) == {
        Account.CONSUMER_RECEIVABLE: 7800, Account.CARD_CLEARING: 2600, Account.AUTHORIZED_UNCAPTURED: -10_000,
        Account.PLAN_FEES: -400,
    }  # fmt: skip
    causes = {transfer.posting: transfer.cause for transfer in outcome.transfers}
    assert causes == {"authorization": ORDER, "installment_paid": CHARGE}


def test_approval_with_auto_capture_captures_everything_in_the_same_outcome() -> None:
    outcome = _approve(_charging(auto_capture=True))
    assert outcome.order.payment_state is PaymentState.CAPTURED
    assert (outcome.order.captured, outcome.order.authorization_expires_at) == (10_000, None)
    assert outcome.movement is not None
    assert (outcome.movement.kind, outcome.movement.amount) == (MovementKind.CAPTURE, 10_000)
    assert [event.type for event in outcome.events] == ["order.approved", "capture.completed"]
    assert held(outcome.transfers)[Account.MERCHANT_PAYABLE] == -10_000


def test_only_the_charge_that_the_order_waits_for_approves_it() -> None:
    with pytest.raises(AssertionError):
        _approve(_charging(charging=UUID(int=77)))
    with pytest.raises(AssertionError):
        _approve(created())


def test_a_failed_card_leaves_the_order_open_for_another() -> None:
    outcome = _fail(_charging())
    assert (outcome.order.status, outcome.order.card_failures) == (Status.CREATED, 1)
    assert outcome.order.charging is None
    assert outcome.charge_settled == Settled(CHARGE, JobState.FAILED, "card_declined")
    assert outcome.events == ()
    checkout.require_open(outcome.order, NOW)


def test_the_third_failed_card_declines_the_order() -> None:
    order = created()
    seen = []
    for number in range(1, 4):
        begun = checkout.begin(order, AGREED, _charge(UUID(int=number)), YES, NOW).order
        outcome = _fail(begun)
        order = outcome.order
        seen.append((order.card_failures, order.status, [event.type for event in outcome.events]))
    assert seen == [
        (1, Status.CREATED, []), (2, Status.CREATED, []), (3, Status.DECLINED, ["order.declined"]),
    ]  # fmt: skip
    with pytest.raises(Final):
        checkout.begin(order, AGREED, _charge(), YES, NOW)


def test_after_two_failed_cards_a_third_may_pay() -> None:
    assert _approve(_charging(card_failures=2)).order.status is Status.APPROVED


def test_a_risk_decline_is_final_and_keeps_its_decision() -> None:
    outcome = checkout.decline(created(), NO, LETTER, NOW)
    assert outcome.order.status is Status.DECLINED
    assert (outcome.decision, outcome.notices) == (NO, (LETTER,))
    (event,) = outcome.events
    assert (event.type, event.success) == ("order.declined", False)
    assert event.message


@pytest.mark.parametrize(("left", "word"), [(True, "left"), (False, "in time")])
def test_an_order_is_abandoned_when_its_consumer_leaves_or_its_time_ends(*, left: bool, word: str) -> None:
    outcome = checkout.abandon(created(), NOW, left=left)
    assert outcome.order.status is Status.ABANDONED
    (event,) = outcome.events
    assert (event.type, event.success) == ("order.abandoned", False)
    assert word in (event.message or "")


BEGINNINGS: list[Callable[[Order], object]] = [
    lambda order: checkout.require_open(order, NOW),
    lambda order: checkout.begin(order, AGREED, _charge(), YES, NOW),
    lambda order: checkout.decline(order, NO, LETTER, NOW),
    lambda order: checkout.abandon(order, NOW, left=True),
    lambda order: checkout.abandon(order, NOW, left=False),
]


@pytest.mark.parametrize("attempt", BEGINNINGS)
def test_no_other_change_is_made_while_a_card_is_being_charged(attempt: Callable[[Order], object]) -> None:
    with pytest.raises(Charging):
        attempt(_charging())


@pytest.mark.parametrize("attempt", BEGINNINGS)
@pytest.mark.parametrize("status", FINAL)
def test_a_finished_order_is_not_changed(attempt: Callable[[Order], object], status: Status) -> None:
    with pytest.raises(Final) as caught:
        attempt(created(status=status))
    assert caught.value.status is status


@pytest.mark.parametrize("status", FINAL)
def test_a_finished_order_is_not_approved(status: Status) -> None:
    with pytest.raises(Final):
        _approve(_charging(status=status))


def test_an_order_is_open_until_the_moment_it_expires() -> None:
    end = NOW + timedelta(hours=1)
    checkout.require_open(created(), end - timedelta(microseconds=1))
    with pytest.raises(Lapsed):
        checkout.require_open(created(), end)
    with pytest.raises(Lapsed):
        checkout.begin(created(), AGREED, _charge(), YES, end)


def test_a_charge_that_began_in_time_may_be_answered_after_the_order_expires() -> None:
    late = NOW + timedelta(hours=2)
    paid = plan()
    outcome = checkout.approve(
        _charging(), paid, Settled(CHARGE, JobState.SUCCEEDED), MOVEMENT, TOLD, late, 13
    )
    assert outcome.order.status is Status.APPROVED
    assert outcome.order.authorization_expires_at == late + timedelta(days=13)


def test_approval_needs_the_first_installment_to_be_paid_by_this_charge() -> None:
    unpaid = schedule(10_000, 0, TODAY)
    foreign = [replace(unpaid[0], charge_id=UUID(int=88)), *unpaid[1:]]
    for agreed in (unpaid, foreign):
        with pytest.raises(AssertionError):
            checkout.approve(
                _charging(), agreed, Settled(CHARGE, JobState.SUCCEEDED), MOVEMENT, TOLD, NOW, 13
            )
