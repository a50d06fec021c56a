"""bench/population: the same seed gives the same people, and their outcomes match their true risks."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date

import pytest

from bench.population import Placed, decided, generate, standard_policy
from cuota.core.risk.approvals import FIELDS, read_fields
from cuota.core.risk.decision import decide
from cuota.core.risk.facts import Facts

POLICY = standard_policy()
ORDERS = 6_000


@pytest.fixture(scope="module")
def helpful() -> list[Placed]:
    return generate(1, ORDERS, helpful=True)


@pytest.fixture(scope="module")
def noise() -> list[Placed]:
    return generate(1, ORDERS, helpful=False)


def test_the_same_seed_makes_the_same_population_and_another_seed_a_different_one(
    helpful: list[Placed],
) -> None:
    assert generate(1, 300, helpful=True) == helpful[:300]
    assert generate(2, 300, helpful=True) != helpful[:300]


def test_an_order_is_plain_json_and_its_facts_are_read_back(helpful: list[Placed]) -> None:
    for placed in helpful[:200]:
        document = json.loads(json.dumps(placed.as_document()))
        assert Facts.of_inputs(document["facts"]) == placed.facts
        assert document["additional"] == placed.additional


def test_a_merchant_sends_strings_in_all_ten_fields_and_sometimes_unreadable_values(
    helpful: list[Placed],
) -> None:
    sent = Counter(name for placed in helpful for name in placed.additional)
    assert set(sent) == {field.gateway for field in FIELDS}
    assert all(isinstance(value, str) for placed in helpful for value in placed.additional.values())
    read = [read_fields(placed.additional, placed.placed_on) for placed in helpful]
    assert 0 < sum(bool(each.unreadable) for each in read) < ORDERS / 5
    assert not any(each.unknown for each in read)


def test_losses_come_as_often_as_their_risk_says(helpful: list[Placed]) -> None:
    ranked = sorted(helpful, key=lambda placed: placed.risk)
    for part in (ranked[: ORDERS // 2], ranked[ORDERS // 2 :], ranked[-ORDERS // 10 :]):
        expected = sum(placed.risk for placed in part)
        spread = sum(placed.risk * (1 - placed.risk) for placed in part) ** 0.5
        assert abs(sum(placed.lost for placed in part) - expected) < 4 * spread


def gap(orders: list[Placed]) -> float:
    """Return how much higher the risk of an unknown device is, at the same score."""
    risks: dict[tuple[int, str], list[float]] = {}
    for placed in orders:
        band = decide(placed.facts, POLICY).score // 20
        risks.setdefault((band, placed.additional.get("sameDevice", "")), []).append(placed.risk)

    def mean(band: int, word: str) -> float:
        return sum(risks[band, word]) / len(risks[band, word])

    bands = [band for band, word in risks if word == "true" and len(risks.get((band, "false"), ())) >= 100]
    return sum(mean(band, "false") / mean(band, "true") - 1 for band in bands) / len(bands)


def test_useful_fields_predict_risk_beyond_the_score_and_random_fields_do_not(
    helpful: list[Placed], noise: list[Placed]
) -> None:
    assert gap(helpful) > 0.4
    assert abs(gap(noise)) < 0.15


def test_without_the_data_both_populations_are_decided_the_same_way(
    helpful: list[Placed], noise: list[Placed]
) -> None:
    one, other = (
        sum(decide(placed.facts, POLICY).approved for placed in orders) for orders in (helpful, noise)
    )
    assert 0.75 * ORDERS < one < 0.95 * ORDERS
    assert one == pytest.approx(other, rel=0.03)


def test_a_trial_sees_no_outcome_of_orders_that_were_declined_or_are_not_matured(
    helpful: list[Placed],
) -> None:
    orders = decided(helpful, POLICY, as_of=date(2026, 7, 1), matures=90)
    assert 0 < sum(order.matured for order in orders) < ORDERS
    assert any(order.lost for order in orders)
    assert not any(
        order.lost or order.lost_amount for order in orders if not (order.approved and order.matured)
    )
    assert all((order.lost_amount > 0) == order.lost for order in orders)


def test_some_consumers_have_several_orders(helpful: list[Placed]) -> None:
    consumers = Counter(placed.consumer for placed in helpful)
    assert 0.5 * ORDERS < len(consumers) < 0.9 * ORDERS
