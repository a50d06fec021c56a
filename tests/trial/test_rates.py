"""trial/rates and trial/risk_curve: the arithmetic of a trial, compared with numbers computed in another way."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.trial.rates import interval, wilson
from cuota.trial.risk_curve import fitted, risk
from support.properties.steady import STEADY


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_a_share_has_wilson_s_interval(hits: int, of: int, low: float, high: float) -> None:
    found = wilson(hits, of)
    assert found.value == hits / of
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_the_interval_of_a_share_of_no_orders_is_from_zero_to_one() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)


@STEADY
@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_a_share_is_within_its_interval_and_the_interval_is_between_zero_and_one(
    hits: int, more: int
) -> None:
    found = wilson(hits, hits + more)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_an_interval_contains_the_middle_95_percent() -> None:
    found = interval(7.0, [float(number) for number in reversed(range(1_001))])
    assert (found.value, found.low, found.high) == (7.0, 25.0, 975.0)


def test_a_curve_through_two_points_has_the_shares_of_these_points() -> None:
    # One in four orders is lost at 0, one in ten at 1. By hand, these are log-odds of -1.0986 and -2.1972.
    curve = fitted([(0.0, 0.0), (1.0, 0.0)], [40_000, 40_000], [10_000, 4_000])
    assert curve[0] == pytest.approx(math.log(1 / 3), abs=1e-4)
    assert curve[1] == pytest.approx(math.log(1 / 9) - math.log(1 / 3), abs=1e-4)
    assert curve[2] == 0.0
    assert risk(curve, (1.0, 0.0)) == pytest.approx(0.1, abs=1e-5)


def test_the_curve_finds_the_risks_from_which_the_outcomes_were_drawn() -> None:
    chance, truth = random.Random(1), (-1.5, -1.2, -0.7)
    places = [(x / 4, y / 4) for x in range(-4, 9) for y in range(-4, 5)]
    lost = [float(sum(chance.random() < risk(truth, place) for _ in range(500))) for place in places]
    found = fitted(places, [500.0] * len(places), lost)
    assert found == pytest.approx(truth, abs=0.06)


def test_refitting_from_a_nearby_start_gives_the_same_curve() -> None:
    places, seen, lost = [(0.0, 0.0), (0.5, 0.2), (1.0, -0.3)], [400.0] * 3, [40.0, 20.0, 15.0]
    whole = fitted(places, seen, lost)
    assert fitted(places, seen, lost, (whole[0] + 0.1, whole[1] - 0.1, whole[2] + 0.1), 4) == pytest.approx(
        whole, abs=1e-4
    )


@pytest.mark.parametrize("lost", [[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
def test_a_curve_can_be_fitted_if_all_outcomes_are_the_same(lost: list[float]) -> None:
    curve = fitted([(0.0, 0.0), (1.0, 1.0)], [9.0, 9.0], lost)
    assert all(map(math.isfinite, curve))
    assert all(0 <= risk(curve, place) <= 1 for place in [(0.0, 0.0), (1.0, 1.0), (99.0, -99.0)])


def test_a_curve_without_data_is_flat() -> None:
    assert fitted([], [], []) == (0.0, 0.0, 0.0)
