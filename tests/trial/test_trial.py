"""trial/trial: which orders the data would have approved, at what loss, and whether that is enough to use the data."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from cuota.trial.rates import Rate
from cuota.trial.trial import TrialOrder, TrialReport, report, verdict

BOUND = 60


def decided(number: int, **more: Any) -> TrialOrder:
    """Return an approved, matured, paid order of a new consumer, ten points above the threshold, without data."""
    values: dict[str, Any] = {
        "group": str(number), "score": 510, "threshold": 500, "refused": False, "approved": True, "amount": 10_000,
        "fields": {}, "matured": True, "lost": False, "lost_amount": 0,
    }  # fmt: skip
    order = TrialOrder(**{**values, **more})
    return replace(order, lost_amount=7_500) if order.lost and not order.lost_amount else order


def told(orders: list[TrialOrder], **more: Any) -> TrialReport:
    return report(orders, bound=BOUND, **{"resamples": 40, **more})


def drawn(seed: int, orders: int, *, helps: float, orders_each: int = 1) -> list[TrialOrder]:
    """Return orders whose odds of a loss depend on the score and, as far as `helps` says, on a hidden trust that the
    points show."""
    chance = random.Random(seed)
    made = []
    for number in range(orders):
        trust, score = chance.gauss(0, 1), int(chance.gauss(535, 40))
        odds = -2.6 - (score - 535) / 60 - helps * trust
        lost = score >= 500 and chance.random() < 1 / (1 + 2.718281828 ** (-odds))
        one = decided(
            number, score=score, approved=score >= 500, lost=lost, fields={"same_device": trust > 0}
        )
        made += [replace(one, points=round(45 * trust))] * orders_each
    return made


# --- Counting


def test_everything_is_counted_once() -> None:
    orders = [
        *(decided(number, lost=number < 4) for number in range(60)),
        *(decided(100 + number, matured=False) for number in range(10)),
        *(decided(200 + number, score=450, approved=False) for number in range(30)),
    ]
    found = told(orders)
    assert (found.decided, found.approved, found.matured, found.losses, found.judged) == (100, 70, 60, 4, 90)
    assert (found.approved_amount, found.lost_amount) == (600_000, 30_000)
    assert found.approval_without.value == pytest.approx(60 / 90)
    assert found.loss_without.value == pytest.approx(4 / 60)


def test_coverage_is_reported_for_each_field_and_for_any_field() -> None:
    orders = [
        decided(number, fields={"same_device": True} if number % 4 == 0 else {}) for number in range(40)
    ]
    found = told(orders)
    shares = {each.field: (each.orders, each.share.value) for each in found.coverage}
    assert len(shares) == 10
    assert shares["same_device"] == (10, 0.25)
    assert shares["customer_logged_in"] == (0, 0.0)
    assert found.covered.value == 0.25


def test_a_trial_without_orders_says_that_it_has_no_orders() -> None:
    found = told([])
    assert (found.decided, found.shift, found.calibration) == (0, 0, ())
    assert "There are 0 decided orders; 1,000 are needed." in verdict(found).reasons


# --- What the data would have changed, computed by hand


def test_at_the_same_threshold_the_points_move_orders_across_it() -> None:
    orders = [
        *(decided(number, points=5) for number in range(50)),
        *(decided(100 + number, points=-11, lost=number < 10) for number in range(20)),
        *(
            decided(200 + number, points=-10) for number in range(20)
        ),  # an order exactly at the threshold is approved
        *(decided(300 + number, score=480, approved=False, points=20) for number in range(7)),
        *(decided(400 + number, score=480, approved=False, points=19) for number in range(3)),
    ]
    found = told(orders).same_threshold
    assert (found.swapped_in, found.swapped_out, found.more) == (7, 20, -13)
    assert found.approval.value == pytest.approx(77 / 100)
    assert found.approval_change.value == pytest.approx(-0.13)


def test_points_do_not_move_an_order_that_a_rule_refused_or_that_has_no_data_or_is_too_far_from_the_threshold() -> (
    None
):
    orders = [
        *(decided(number, points=0, lost=number < 5) for number in range(100)),
        *(decided(200 + number, score=560, approved=False, refused=True, points=60) for number in range(10)),
        *(decided(300 + number, score=499, approved=False) for number in range(10)),
        *(decided(400 + number, score=439, approved=False, points=500) for number in range(10)),
        *(decided(500 + number, score=560, points=-500) for number in range(10)),
    ]
    found = told(orders).same_threshold
    assert (found.swapped_in, found.swapped_out) == (0, 0)


def test_at_equal_loss_the_shift_approves_better_orders_instead_of_the_saved_losses() -> None:
    # The orders with low scores are lost. The data identifies these, and gives many points to most of the declined
    # orders.
    orders = [
        *(decided(number, score=500 + number % 40, points=-40, lost=True) for number in range(50)),
        *(decided(100 + number, score=500 + number % 120, points=30) for number in range(950)),
        *(decided(2_000 + number, score=480, approved=False, points=30) for number in range(200)),
        *(decided(3_000 + number, score=480, approved=False, points=-40) for number in range(100)),
    ]
    found = told(orders)
    assert found.loss_without.value == pytest.approx(0.05)
    assert found.equal_loss.swapped_in == 200
    assert found.equal_loss.swapped_out <= 50
    assert found.equal_loss.loss.value <= 0.05
    assert found.equal_loss.approval_change.value > 0.1
    assert found.equal_loss.approval_change.low > 0
    assert found.caught_with == pytest.approx(1.0)
    assert found.caught_without == pytest.approx(
        0.62, abs=0.01
    )  # scores 500 to 520 have 20 + 11 of the 50 losses


def test_declined_orders_are_not_assumed_to_have_the_outcomes_of_approved_orders() -> None:
    # The risk falls steeply with the score, and the points predict nothing. Approving the declined orders would cost
    # far more.
    orders = drawn(3, 4_000, helps=0.0)
    worse = [replace(order, points=60 if not order.approved else 0) for order in orders]
    found = told(worse)
    assert found.same_threshold.swapped_in > 300
    assert found.same_threshold.loss.value > 1.15 * found.loss_without.value
    assert found.equal_loss.approval_change.value < 0.01


def test_the_gain_from_moving_the_threshold_is_not_credited_to_the_data() -> None:
    # Losses rise with the score, so a lower threshold would approve more and lose less, whatever the data says.
    orders = [
        *(
            decided(number, score=500 + number % 80, points=0, lost=number % 80 > 60)
            for number in range(2_000)
        ),
        *(decided(5_000 + number, score=470, approved=False, points=0) for number in range(300)),
    ]
    assert told(orders).equal_loss.swapped_in == 300
    found = told(orders).equal_loss.approval_change
    assert (found.low, found.value, found.high) == (0.0, 0.0, 0.0)


def test_a_known_outcome_counts_even_if_the_score_without_points_would_decline() -> None:
    # This happens in the mode on: these orders were approved by their points, and all of them were lost.
    orders = [
        *(decided(number, points=0, lost=number % 25 == 0) for number in range(500)),
        *(decided(1_000 + number, score=490, points=20, lost=True) for number in range(40)),
    ]
    found = told(orders).same_threshold
    assert found.swapped_in == 40
    assert found.loss.value == pytest.approx(60 / 540)


# --- Intervals


def test_the_same_orders_and_seed_give_the_same_report_and_another_seed_other_intervals() -> None:
    orders = drawn(1, 600, helps=1.0)
    assert told(orders, seed=5) == told(orders, seed=5)
    assert told(orders, seed=5).equal_loss.approval_change != told(orders, seed=6).equal_loss.approval_change


def test_many_orders_of_one_consumer_do_not_make_an_interval_narrower() -> None:
    once = told(drawn(2, 500, helps=1.0), seed=1).caught_change
    repeated = told(drawn(2, 500, helps=1.0, orders_each=5), seed=1).caught_change
    strangers = [
        replace(order, group=str(at)) for at, order in enumerate(drawn(2, 500, helps=1.0, orders_each=5))
    ]
    narrow = told(strangers, seed=1).caught_change
    assert repeated.high - repeated.low == pytest.approx(once.high - once.low, rel=0.05)
    assert narrow.high - narrow.low < 0.7 * (once.high - once.low)


def test_calibration_bins_contain_every_matured_order_once_and_agree_with_the_outcomes() -> None:
    found = told(drawn(4, 5_000, helps=1.0))
    assert sum(each.orders for each in found.calibration) == found.matured
    assert sum(each.losses for each in found.calibration) == found.losses
    predicted = [each.predicted for each in found.calibration]
    assert len(predicted) == 10
    assert predicted == sorted(predicted)
    within = sum(each.observed.low <= each.predicted <= each.observed.high for each in found.calibration)
    assert within >= 8


def test_a_report_is_plain_json() -> None:
    found = told(drawn(1, 200, helps=1.0))
    document = json.loads(json.dumps(found.as_document()))
    assert document["equal_loss"]["approval_change"]["low"] == found.equal_loss.approval_change.low


# --- The verdict


@pytest.fixture(scope="module")
def good() -> TrialReport:
    return told(drawn(7, 5_000, helps=1.2), resamples=100)


def test_a_trial_with_enough_orders_and_an_interval_above_zero_is_ready(good: TrialReport) -> None:
    found = verdict(good)
    assert found.ready
    assert found.reasons[0].startswith("At equal loss the approval rate would change by +")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"decided": 999}, "There are 999 decided orders; 1,000 are needed."),
        ({"matured": 499}, "There are 499 approved orders whose outcome is known; 500 are needed."),
        ({"losses": 29}, "There are 29 losses among them; 30 are needed."),
        ({"covered": Rate(0.19, 0.18, 0.2)}, "Only 19% of the orders came with data; 20% are needed."),
    ],
)
def test_too_few_orders_or_losses_refuse_the_trial_and_the_reason_says_how_many_are_needed(
    good: TrialReport, change: dict[str, Any], reason: str
) -> None:
    assert verdict(replace(good, **change)).reasons == (reason,)
    assert not verdict(replace(good, **change)).ready


def test_with_too_few_orders_no_interval_is_reported(good: TrialReport) -> None:
    found = replace(good, decided=0, matured=0, losses=0, caught_change=Rate(0.0, 0.0, 0.0))
    assert verdict(found).reasons == (
        "There are 0 decided orders; 1,000 are needed.",
        "There are 0 approved orders whose outcome is known; 500 are needed.",
        "There are 0 losses among them; 30 are needed.",
    )


def test_an_interval_that_contains_zero_refuses_the_trial_and_the_reason_has_the_interval(
    good: TrialReport,
) -> None:
    gain = replace(good.equal_loss, approval_change=Rate(0.0123, 0.0, 0.03))
    found = verdict(replace(good, equal_loss=gain))
    assert not found.ready
    assert "+1.23 percentage points (95% interval +0.00 to +3.00)" in found.reasons[0]


def test_the_outcomes_of_approved_orders_alone_must_show_the_gain_too(good: TrialReport) -> None:
    found = verdict(replace(good, caught_change=Rate(0.05, -0.01, 0.1)))
    assert not found.ready
    assert "95% interval -1.0% to +10.0%" in found.reasons[0]
