"""trial/fit: useful data passes the trial and approves more at equal loss; random data is refused. The test
population's true risks are known."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from bench.population import decided, generate, standard_policy
from cuota.core.risk.model import FEATURES, Model, model_of, points
from cuota.trial.fit import Trial, cross_fitted, fit, trial
from cuota.trial.logistic import coefficients
from cuota.trial.trial import TrialOrder, report, verdict

LATER = date(2026, 12, 31)
POLICY = standard_policy()
BOUND = POLICY.approvals_most
HELPFUL_ORDERS, NOISE_ORDERS, HOLDOUT_ORDERS = 6_000, 1_500, 20_000
NOISE_SEEDS = range(100, 120)
# The lower end of a 95% interval exceeds the true value 2.5 times in 100. More than 2 of 20 seeds do so once in 77
# times.
NOISE_ALLOWED = 2


def orders_of(seed: int, orders: int, *, helpful: bool) -> list[TrialOrder]:
    return decided(generate(seed, orders, helpful=helpful), POLICY, as_of=LATER)


@pytest.fixture(scope="module")
def helpful() -> list[TrialOrder]:
    return orders_of(1, HELPFUL_ORDERS, helpful=True)


@pytest.fixture(scope="module")
def found(helpful: list[TrialOrder]) -> Trial:
    return trial(helpful, bound=BOUND, seed=1)


def model_in(found: Trial) -> Model:
    assert found.model is not None
    return found.model


# --- A whole trial


def test_a_trial_on_useful_data_is_ready(found: Trial) -> None:
    assert verdict(found.report).reasons[0].startswith("At equal loss the approval rate would change by +")
    assert verdict(found.report).ready
    assert model_in(found).shift == found.report.shift


def test_the_fitted_model_approves_more_of_other_consumers_without_higher_true_losses(found: Trial) -> None:
    model, fresh = model_in(found), generate(4_711, HOLDOUT_ORDERS, helpful=True)
    before, after = [], []
    for placed, order in zip(fresh, decided(fresh, POLICY, as_of=LATER), strict=True):
        margin = order.score - order.threshold
        given = points(model, order.fields, order.amount)[0]
        if not order.refused and margin >= 0:
            before.append(placed.risk)
        if not order.refused and margin + given >= 0:
            after.append(placed.risk)
    change = (len(after) - len(before)) / HOLDOUT_ORDERS
    assert change > 0.02
    assert sum(after) / len(after) <= 1.02 * sum(before) / len(before)
    said = found.report.equal_loss.approval_change
    assert said.low - 0.01 <= change <= said.high + 0.01


def test_the_reported_losses_agree_with_the_true_losses() -> None:
    population = generate(2, HELPFUL_ORDERS, helpful=True)
    orders = decided(population, POLICY, as_of=LATER)
    judged = cross_fitted(orders, bound=BOUND, seed=2)
    said = report(judged, bound=BOUND, seed=2, resamples=200)
    truth = [
        placed.lost
        for placed, order in zip(population, judged, strict=True)
        if not order.refused and order.score - order.threshold + bounded(order, said.shift) >= 0
    ]
    assert len(truth) == pytest.approx(said.equal_loss.approval.value * len(orders), abs=0.5)
    # The report assumes that declined orders are worse than the curve says, so the true losses may be lower than
    # reported.
    assert 0.9 * said.equal_loss.loss.low <= sum(truth) / len(truth) <= said.equal_loss.loss.high


def bounded(order: TrialOrder, shift: int) -> int:
    return 0 if order.points is None else max(-BOUND, min(BOUND, order.points + shift))


def test_a_trial_on_random_data_is_refused() -> None:
    ready = [
        seed
        for seed in NOISE_SEEDS
        if verdict(
            noise_report(seed)
        ).ready  # every seed has enough orders and losses, so only the intervals are a reason to refuse
    ]
    assert len(ready) <= NOISE_ALLOWED, f"noise passed as help with the seeds {ready}"


def noise_report(seed: int) -> object:
    judged = cross_fitted(orders_of(seed, NOISE_ORDERS, helpful=False), bound=BOUND, seed=seed)
    told = report(judged, bound=BOUND, seed=seed, resamples=100)
    assert told.losses >= 30
    assert told.matured >= 500
    return told


# --- The fitted model


def test_the_same_orders_give_the_same_model_and_version(helpful: list[TrialOrder]) -> None:
    assert fit(helpful, bound=BOUND) == fit(helpful, bound=BOUND)
    assert fit(helpful, bound=BOUND) != fit(helpful[: len(helpful) // 2], bound=BOUND)


def test_a_model_gives_the_same_points_after_json(found: Trial, helpful: list[TrialOrder]) -> None:
    model = model_in(found)
    served = model_of(json.loads(json.dumps(model.as_document())))
    assert served == model
    given = [points(served, order.fields, order.amount) for order in helpful]
    assert max(abs(total) for total, _ in given) <= BOUND
    assert len({total for total, _ in given}) > 50


def flip(order: TrialOrder, field: str) -> TrialOrder:
    return (
        replace(order, fields={**order.fields, field: not order.fields[field]})
        if field in order.fields
        else order
    )


def test_a_field_with_the_wrong_direction_is_dropped_and_the_others_are_kept(
    helpful: list[TrialOrder],
) -> None:
    turned = [flip(order, "same_device") for order in helpful]
    kept = {weight.field for weight in fit_of(turned).weights}
    assert "same_device" in {weight.field for weight in fit_of(helpful).weights}
    assert "same_device" not in kept
    assert kept >= {"merchant_risk_assessment", "account_creation_date"}


def fit_of(orders: list[TrialOrder]) -> Model:
    model = fit(orders, bound=BOUND)
    assert model is not None
    return model


def test_no_weight_exceeds_the_bound_or_has_the_wrong_sign(helpful: list[TrialOrder]) -> None:
    for bound in (5, BOUND):
        model = fit(helpful, bound=bound)
        assert model is not None
        assert model.weights
        assert all(0 < weight.milli_points <= bound * 1_000 for weight in model.weights)


def test_a_field_that_few_orders_have_gets_no_weight(helpful: list[TrialOrder]) -> None:
    def rare(order: TrialOrder, at: int) -> TrialOrder:
        fields = {name: value for name, value in order.fields.items() if name != "same_device" or at < 40}
        return replace(order, fields=fields)

    model = fit_of([rare(order, at) for at, order in enumerate(helpful)])
    assert "same_device" not in {weight.field for weight in model.weights}


def test_no_consumer_is_judged_by_a_model_that_was_fitted_with_that_consumer_s_orders(
    helpful: list[TrialOrder],
) -> None:
    some = helpful[:2_500]
    group = next(order.group for order in some if order.approved and order.matured and order.points is None)

    def turned(order: TrialOrder) -> TrialOrder:
        mine = order.group == group and order.approved
        return replace(order, lost=not order.lost, amount=order.amount) if mine else order

    def mine(orders: list[TrialOrder]) -> list[int | None]:
        return [order.points for order in orders if order.group == group]

    before = cross_fitted(some, bound=BOUND, seed=3)
    after = cross_fitted([turned(order) for order in some], bound=BOUND, seed=3)
    assert mine(before) == mine(after)
    assert [order.points for order in before] != [order.points for order in after]


@pytest.mark.parametrize(
    "change", [lambda order: replace(order, lost=False), lambda order: replace(order, matured=False)]
)
def test_without_losses_there_is_no_model_and_the_verdict_says_what_is_missing(
    helpful: list[TrialOrder], change: Callable[[TrialOrder], TrialOrder]
) -> None:
    told = trial([change(order) for order in helpful[:800]], bound=BOUND)
    assert told.model is None
    assert told.report.shift == 0
    assert "There are 800 decided orders; 1,000 are needed." in verdict(told.report).reasons
    assert "There are 0 losses among them; 30 are needed." in verdict(told.report).reasons


# --- The packages that it needs


def test_serving_a_model_and_judging_a_trial_do_not_import_numpy() -> None:
    modules = (
        "cuota.core.risk.model, cuota.trial.trial, cuota.trial.page, cuota.trial.fit, cuota.run.process, sys"
    )
    code = f"import {modules}; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "False\n", ran.stderr


@pytest.mark.parametrize("fields", [1, 4, 9])
def test_the_regression_has_the_same_result_as_scikit_learn(fields: int) -> None:
    from sklearn.linear_model import LogisticRegression

    chance = random.Random(fields)
    rows = [[chance.gauss(0, 1 + column) for column in range(fields)] for _ in range(3_000)]
    outcomes = [chance.random() < 1 / (1 + math.exp(2 - 0.4 * sum(row))) for row in rows]
    known = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(rows, outcomes).coef_[0]
    assert coefficients(rows, outcomes) == pytest.approx(list(known), rel=1e-6, abs=1e-8)


def test_the_regression_ends_even_if_the_data_separates_the_outcomes_completely() -> None:
    rows = [[float(value)] for value in range(-50, 50)]
    (found,) = coefficients(rows, [value >= 0 for value in range(-50, 50)])
    assert 0 < found < 10


def test_the_population_has_data_for_every_feature(found: Trial) -> None:
    assert {weight.field for weight in model_in(found).weights} <= set(FEATURES)
    assert len(model_in(found).weights) >= 4
