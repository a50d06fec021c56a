"""core/plan/collection: reminders, the charge on its day, and what happens after the card's answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from cuota.core.installment import plan_state
from cuota.core.ledger import Account
from cuota.core.order.job import JobState
from cuota.core.order.movement import MovementKind
from cuota.core.order.posting import authorization, installment_paid
from cuota.core.order.refund import refund
from cuota.core.order.void import void
from cuota.core.plan import collection, new_card, payday
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Charge, Origin
from cuota.core.plan.collection import RETRIES, CardBusy, NothingOwed
from cuota.core.plan.declines import AUTHENTICATION_REQUIRED, HARD_DECLINES
from cuota.core.plan.notice import NoticeKind
from support.core.collecting import CARD, DUE_2, ZONE, begun, on, said_no, timed
from support.core.values import (
    MOVEMENT,
    NOW,
    TODAY,
    after,
    asked,
    charge_id,
    held,
    ids,
    plan,
    to_cards,
)


def test_a_payment_is_due_at_the_start_of_its_day_where_the_consumer_lives() -> None:
    second = timed()[1]
    assert second.due_on == date(2026, 12, 5)
    assert second.charge_at == DUE_2
    assert second.charge_at.astimezone(UTC) == datetime(2026, 12, 5, 5, tzinfo=UTC)


def test_reminders_come_three_days_and_one_day_ahead_at_ten_in_the_morning() -> None:
    agreed = timed()
    order, told = on(agreed, captured=10_000), []
    now = collection.next_at(agreed)
    while now is not None and now < DUE_2:
        outcome = collection.remind(order, agreed, ZONE, now, ids())
        assert outcome is not None
        told.append(
            (now.astimezone(ZONE).isoformat(), [(n.kind, n.installment, n.amount) for n in outcome.notices])
        )
        agreed, order = after(agreed, outcome), outcome.order
        now = order.collect_at
    reminder = [(NoticeKind.REMINDER, 2, 2500)]
    assert told == [("2026-12-02T10:00:00-05:00", reminder), ("2026-12-04T10:00:00-05:00", reminder)]
    assert now == DUE_2


def test_a_payment_across_the_change_of_the_clocks_is_still_due_at_local_midnight() -> None:
    march = [replace(item, due_on=date(2027, 3, 14)) if item.number == 2 else item for item in plan()]
    second = payday.timed(march, ZONE, NOW)[1]
    assert second.charge_at == datetime(2027, 3, 14, 5, tzinfo=UTC)
    third = payday.timed([replace(i, due_on=date(2027, 3, 15)) for i in march], ZONE, NOW)[2]
    assert third.charge_at == datetime(2027, 3, 15, 4, tzinfo=UTC)


def test_a_reminder_of_a_payment_that_is_already_due_is_not_sent() -> None:
    agreed = timed()
    outcome = collection.remind(on(agreed), agreed, ZONE, DUE_2 + timedelta(hours=1), ids())
    assert outcome is not None
    assert outcome.notices == ()
    assert outcome.order.collect_at == DUE_2


def test_nothing_is_charged_before_its_day() -> None:
    agreed = timed()
    assert (
        collection.begin(on(agreed), agreed, None, CARD, charge_id(2), DUE_2 - timedelta(seconds=1)) is None
    )


def test_the_charge_is_recorded_with_its_card_before_the_rail_is_called() -> None:
    agreed = timed()
    order, charge = begun(on(agreed), agreed, DUE_2)
    assert charge == Charge(charge_id(2), 2, 2500, "USD", "card_token", "visa", "4242", Origin.SCHEDULE)
    assert (order.charging, order.charging_since) == (charge_id(2), DUE_2)


def test_no_second_card_is_charged_while_a_charge_is_in_progress() -> None:
    agreed = timed()
    order, _ = begun(on(agreed), agreed, DUE_2)
    for number in (None, 2, 3):
        with pytest.raises(CardBusy):
            collection.begin(order, agreed, number, CARD, charge_id(3), DUE_2)
    with pytest.raises(CardBusy):
        new_card.change_card(order, agreed, CARD, ZONE, DUE_2, ids())


def test_a_successful_payment_is_posted_and_the_next_one_is_due_two_weeks_later() -> None:
    agreed = timed()
    order, charge = begun(on(agreed), agreed, DUE_2)
    outcome = collection.paid(order, agreed, charge, ZONE, DUE_2, ids())
    assert outcome.order.charging is None
    assert [item.state for item in after(agreed, outcome)] == ["paid", "paid", "scheduled", "scheduled"]
    assert held(outcome.transfers) == {Account.CARD_CLEARING: 2500, Account.CONSUMER_RECEIVABLE: -2500}
    assert outcome.order.collect_at == datetime(2026, 12, 16, 10, tzinfo=ZONE)
    assert outcome.charge_settled is not None
    assert outcome.charge_settled.state is JobState.SUCCEEDED
    assert [notice.kind for notice in outcome.notices] == [NoticeKind.PAYMENT_RECEIVED]


def test_a_paid_plan_is_completed_and_has_nothing_due() -> None:
    agreed = timed(paid=(1, 2, 3))
    order, charge = begun(on(agreed), agreed, datetime(2027, 1, 2, tzinfo=ZONE))
    outcome = collection.paid(order, agreed, charge, ZONE, NOW, ids())
    assert plan_state(after(agreed, outcome)) == "completed"
    assert outcome.order.collect_at is None
    assert replace(outcome.order, captured=10_000).due_at is None


@pytest.mark.parametrize(
    ("paid", "cut", "state"),
    [
        ((1,), 0, "active"),
        ((1, 2, 3, 4), 0, "completed"),
        ((1,), 7_500, "completed"),
        ((1,), 10_000, "cancelled"),
    ],
)
def test_the_state_of_a_plan_follows_from_its_payments(paid: tuple[int, ...], cut: int, state: str) -> None:
    agreed = timed(paid=paid)
    if cut:
        outcome = void(on(agreed), agreed, asked(MovementKind.VOID, cut), MOVEMENT, NOW, ids())
        agreed = after(agreed, outcome)
    assert plan_state(agreed) == state


def test_a_soft_decline_is_retried_after_6_hours_and_1_3_5_and_7_days_and_then_the_consumer_must_give_another_card() -> (
    None
):
    agreed, at, waits, told = timed(), DUE_2, [], []
    for _ in range(6):
        outcome = said_no(agreed, at=at)
        agreed = after(agreed, outcome)
        told += [notice.kind for notice in outcome.notices]
        if agreed[1].charge_at is None:
            break
        waits.append(agreed[1].charge_at - at)
        at = agreed[1].charge_at
    assert waits == list(RETRIES) == [timedelta(hours=6), *(timedelta(days=n) for n in (1, 3, 5, 7))]
    # The first charge, at midnight, has no message, because by the morning the second charge is over.
    assert told == [NoticeKind.PAYMENT_FAILED] * 4 + [NoticeKind.CARD_NEEDED]
    assert (agreed[1].state, plan_state(agreed)) == ("overdue", "overdue")


def test_the_consumer_is_told_at_once_that_the_bank_wants_a_confirmation() -> None:
    outcome = said_no(timed(), AUTHENTICATION_REQUIRED)
    assert [notice.kind for notice in outcome.notices] == [NoticeKind.CONFIRMATION_NEEDED]
    assert after(timed(), outcome)[1].charge_at == DUE_2 + RETRIES[0]


def test_after_fifteen_declines_in_thirty_days_a_scheduled_charge_waits_until_the_first_decline_is_thirty_days_old() -> (
    None
):
    agreed = timed()
    declined_at = [DUE_2 - timedelta(days=days) for days in range(1, 16)]
    outcome = collection.begin(on(agreed), agreed, None, CARD, charge_id(2), DUE_2, declined_at)
    assert outcome is not None
    assert outcome.charge is None
    assert outcome.installments[0].charge_at == DUE_2 + timedelta(days=15)
    with pytest.raises(collection.CardExhausted):
        collection.begin(on(agreed), agreed, 2, CARD, charge_id(2), DUE_2, declined_at)
    older = [DUE_2 - timedelta(days=30), *declined_at[:14]]
    fourteen = collection.begin(on(agreed), agreed, None, CARD, charge_id(2), DUE_2, older)
    assert fourteen is not None
    assert fourteen.charge is not None


@pytest.mark.parametrize("reason", sorted(HARD_DECLINES))
def test_after_a_hard_decline_there_is_no_retry_and_the_consumer_must_give_another_card(reason: str) -> None:
    outcome = said_no(timed(), reason)
    assert [notice.kind for notice in outcome.notices] == [NoticeKind.CARD_NEEDED]
    assert after(timed(), outcome)[1].charge_at is None
    # The third payment still has its reminder and its charge on its own day.
    assert outcome.order.collect_at == datetime(2026, 12, 16, 10, tzinfo=ZONE)


def test_a_failed_payment_that_the_consumer_started_does_not_change_the_schedule() -> None:
    agreed = timed()
    outcome = said_no(agreed, number=3, at=NOW)
    assert (outcome.installments, outcome.notices) == ((), ())
    assert (outcome.order.charging, outcome.order.collect_at) == (None, collection.next_at(agreed))


def test_an_unpaid_payment_may_be_paid_early_but_not_a_paid_or_canceled_one() -> None:
    agreed = timed()
    assert begun(on(agreed), agreed, NOW, number=4)[1].origin is Origin.CONSUMER
    cut = after(agreed, void(on(agreed), agreed, asked(MovementKind.VOID, 2500), MOVEMENT, NOW, ids()))
    for number in (1, 4, 9):
        with pytest.raises(NothingOwed):
            collection.begin(on(agreed), cut, number, CARD, charge_id(2), NOW)


@pytest.mark.parametrize(("cut", "excess"), [(7_000, 2_000), (7_500, 2_500), (5_000, 0), (5_001, 1)])
def test_the_excess_of_a_charge_after_a_refund_goes_back_to_the_card(cut: int, excess: int) -> None:
    agreed = timed()
    order, charge = begun(replace(on(agreed), captured=10_000), agreed, DUE_2)
    given_back = refund(order, agreed, asked(MovementKind.REFUND, cut), MOVEMENT, DUE_2, ids())
    meanwhile = after(agreed, given_back)
    outcome = collection.paid(given_back.order, meanwhile, charge, ZONE, DUE_2, ids())
    assert to_cards(outcome) == ({charge_id(2): excess} if excess else {})
    second = after(meanwhile, outcome)[1]
    assert (second.amount, second.returned, second.state) == (2500 - excess, excess, "paid")
    books = held(
        [*authorization(MOVEMENT, 10_000, 0), *installment_paid(charge_id(1), 2500), *given_back.transfers,
         *outcome.transfers]
    )  # fmt: skip
    still_owed = sum(item.total for item in after(meanwhile, outcome) if not item.paid)
    assert books.get(Account.CONSUMER_RECEIVABLE, 0) == still_owed
    assert books.get(Account.CONSUMER_REFUND_DUE, 0) == -excess


def test_a_new_card_is_charged_at_once_for_the_overdue_payment_and_on_schedule_for_the_others() -> None:
    failed = after(timed(), said_no(timed(), "card_lost"))
    other = PlanCard("other", "mastercard", "4444")
    outcome = new_card.change_card(on(failed), failed, other, ZONE, DUE_2 + timedelta(days=2), ids())
    assert outcome.plan_card == other
    assert [notice.kind for notice in outcome.notices] == [NoticeKind.CARD_CHANGED]
    changed = after(failed, outcome)
    assert [item.charge_at for item in changed[1:]] == [
        DUE_2 + timedelta(days=2), failed[2].charge_at, failed[3].charge_at
    ]  # fmt: skip


def test_a_void_or_refund_changes_the_time_of_the_next_charge() -> None:
    agreed = timed()
    outcome = void(on(agreed), agreed, asked(MovementKind.VOID, 7_500), MOVEMENT, NOW, ids())
    assert outcome.order.collect_at is None
    captured = replace(on(agreed), captured=10_000)
    kept = refund(captured, agreed, asked(MovementKind.REFUND, 2_500), MOVEMENT, NOW, ids())
    assert kept.order.collect_at == collection.next_at(agreed)


def test_an_order_whose_collect_at_differs_from_its_plan_is_corrected() -> None:
    agreed = timed()
    astray = replace(on(agreed), collect_at=NOW)
    outcome = collection.reschedule(astray, agreed, NOW)
    assert outcome is not None
    assert outcome.order.collect_at == collection.next_at(agreed)
    assert collection.reschedule(outcome.order, agreed, NOW) is None


def test_a_paid_payment_has_no_time_of_a_charge_or_reminder() -> None:
    assert [item.charge_at is None for item in timed(paid=(1, 3))] == [True, False, True, False]
    assert date(2026, 11, 21) == TODAY


@pytest.mark.parametrize(
    ("hour", "told"), [(0, "05T09:00"), (8, "05T09:00"), (9, "05T09:00"), (20, "05T20:00"), (21, "06T09:00")]
)
def test_the_result_of_a_scheduled_charge_is_sent_during_the_day(hour: int, told: str) -> None:
    agreed, at = timed(), DUE_2 + timedelta(hours=hour)
    order, charge = begun(on(agreed), agreed, at)
    outcome = collection.paid(order, agreed, charge, ZONE, at, ids())
    assert outcome.notices[0].send_at.astimezone(ZONE).isoformat()[8:16] == told


def test_the_receipt_of_a_payment_that_the_consumer_started_is_sent_at_once_even_at_night() -> None:
    agreed = timed()
    order, charge = begun(on(agreed), agreed, DUE_2, number=3)
    assert collection.paid(order, agreed, charge, ZONE, DUE_2, ids()).notices[0].send_at == DUE_2


def test_a_card_with_a_hard_decline_is_not_charged_for_later_payments_either() -> None:
    dead = after(timed(), said_no(timed(), "card_stolen"))
    captured = on(dead, captured=10_000)
    reminded = collection.remind(captured, dead, ZONE, datetime(2026, 12, 16, 10, tzinfo=ZONE), ids())
    assert reminded is not None
    assert [(n.kind, n.installment) for n in reminded.notices] == [(NoticeKind.CARD_NEEDED, 3)]
    due_3 = datetime(2026, 12, 19, tzinfo=ZONE)
    assert collection.give_up(on(dead), dead, ZONE, due_3 - timedelta(seconds=1), ids()) is None
    outcome = collection.give_up(on(dead), dead, ZONE, due_3, ids())
    assert outcome is not None
    assert outcome.charge is None
    assert [item.state for item in after(dead, outcome)] == ["paid", "overdue", "overdue", "scheduled"]
    assert [(n.kind, n.installment) for n in outcome.notices] == [(NoticeKind.CARD_NEEDED, 3)]


def test_a_card_with_six_soft_declines_is_still_charged_for_the_next_payment() -> None:
    agreed, at = timed(), DUE_2
    for _ in range(6):
        agreed = after(agreed, said_no(agreed, at=at))
        at = agreed[1].charge_at or at
    assert agreed[1].charge_at is None
    assert not collection.needs_card(agreed)
    assert collection.give_up(on(agreed), agreed, ZONE, at + timedelta(days=30), ids()) is None
