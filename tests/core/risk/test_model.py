"""core/risk/model: points are whole numbers, each field changes them in one direction only, and they never exceed the
bound."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.risk.model import FEATURES, BadModel, Model, Weight, measured, model_of, points
from support.properties.steady import STEADY

ALL = tuple(Weight(field, 20_000, 500) for field in FEATURES)
BEST: dict[str, bool | int | str] = {
    "customer_logged_in": True,
    "customer_is_member": True,
    "merchant_risk_assessment": "0",
    "same_device": True,
    "fulfillment_method": "online",
    "account_creation_date": 4_000,
    "last_transaction_date": 0,
    "customer_transaction_count": 500,
    "customer_average_order_value": 1_000_000,
    "customer_fraud_incidents": False,
}
WORST: dict[str, bool | int | str] = {
    "customer_logged_in": False,
    "customer_is_member": False,
    "merchant_risk_assessment": "high",
    "same_device": False,
    "fulfillment_method": "pickup",
    "account_creation_date": 0,
    "last_transaction_date": 4_000,
    "customer_transaction_count": 0,
    "customer_average_order_value": 1,
    "customer_fraud_incidents": True,
}
_weights = st.lists(
    st.builds(Weight, st.sampled_from(list(FEATURES)), st.integers(0, 1_000_000), st.integers(0, 1_000)),
    unique_by=lambda weight: weight.field,
).map(tuple)
_models = st.integers(0, 1_000).flatmap(
    lambda bound: st.builds(Model, st.just("m"), st.just(bound), _weights, st.integers(-bound, bound))
)
_fields = st.fixed_dictionaries(
    {},
    optional={
        "customer_logged_in": st.booleans(),
        "customer_is_member": st.booleans(),
        "merchant_risk_assessment": st.integers(0, 100).map(str) | st.sampled_from(["low", "high", "tier b"]),
        "same_device": st.booleans(),
        "fulfillment_method": st.sampled_from(["online", "pickup", "other"]),
        "account_creation_date": st.integers(0, 10_000),
        "last_transaction_date": st.integers(0, 10_000),
        "customer_transaction_count": st.integers(0, 10**9),
        "customer_average_order_value": st.integers(0, 10**12),
        "customer_fraud_incidents": st.booleans(),
    },
)
_amounts = st.integers(1, 10**12)


def test_in_every_field_the_best_value_gains_points_and_the_worst_value_loses_points() -> None:
    model = Model("m", 1_000, ALL)
    gained = dict(points(model, BEST, 10_000)[1])
    lost = dict(points(model, WORST, 10_000)[1])
    assert list(gained) == list(lost) == list(FEATURES)
    assert all(number > 0 for number in gained.values())
    assert all(number < 0 for number in lost.values())


def test_contributions_are_whole_points_that_can_be_computed_by_hand() -> None:
    weights = (Weight("account_creation_date", 30_000, 600), Weight("customer_fraud_incidents", 12_500, 40))
    found = points(
        Model("m", 60, weights, shift=3), {"account_creation_date": 540, "customer_fraud_incidents": True}, 1
    )
    # 540 days are worth 540 / (540 + 180) = 0.750, so 30 * (0.750 - 0.600) = 4.5, rounded 5. A fraud incident: 12.5 *
    # (0.04 - 1) = -12.
    assert found == (-4, (("account_creation_date", 5), ("customer_fraud_incidents", -12), ("shift", 3)))


def test_without_any_data_there_are_no_points_and_no_shift() -> None:
    model = Model("m", 60, ALL, shift=20)
    assert points(model, {}, 10_000) == (0, ())
    assert points(model, {"merchant_risk_assessment": "tier b", "fulfillment_method": "other"}, 10_000) == (
        0,
        (),
    )


@STEADY
@given(_models, _fields, _amounts)
def test_points_never_exceed_the_bound_and_the_printed_contributions_add_up_to_them(
    model: Model, fields: dict[str, bool | int | str], amount: int
) -> None:
    total, contributions = points(model, fields, amount)
    assert abs(total) <= model.bound
    assert sum(number for _, number in contributions) == total
    assert {name for name, _ in contributions} <= set(fields) | {"shift", "bound"}


_BETTER: dict[str, Any] = {
    "account_creation_date": st.integers(0, 5_000),
    "customer_transaction_count": st.integers(0, 5_000),
    "customer_average_order_value": st.integers(0, 10**9),
}


@STEADY
@given(_models, _fields, _amounts, st.data())
def test_a_better_value_never_loses_points_in_any_model(
    model: Model, fields: dict[str, bool | int | str], amount: int, data: st.DataObject
) -> None:
    before = points(model, fields, amount)[0]
    for field, value in fields.items():
        better = dict(fields)
        if field in _BETTER and value:
            better[field] = int(value) + data.draw(_BETTER[field])
        elif field == "last_transaction_date":
            better[field] = data.draw(st.integers(0, int(value)))
        elif field == "merchant_risk_assessment" and str(value).isdigit():
            better[field] = str(data.draw(st.integers(0, int(value))))
        elif isinstance(value, bool) or value == "pickup":
            better[field] = BEST[field]
        assert points(model, better, amount)[0] >= before


@STEADY
@given(_models, _fields, _amounts, _amounts)
def test_a_larger_order_never_gets_more_points(
    model: Model, fields: dict[str, bool | int | str], amount: int, more: int
) -> None:
    assert points(model, fields, amount + more)[0] <= points(model, fields, amount)[0]


@STEADY
@given(_fields, _amounts)
def test_every_feature_is_between_nought_and_one(fields: dict[str, bool | int | str], amount: int) -> None:
    for field in FEATURES:
        value = measured(field, fields, amount)
        assert value is None or 0 <= value <= 1_000


@STEADY
@given(_models)
def test_a_model_is_read_back_unchanged_from_its_json(model: Model) -> None:
    assert model_of(json.loads(json.dumps(model.as_document()))) == model


@STEADY
@given(_models, _models)
def test_the_version_of_a_model_depends_only_on_its_numbers(one: Model, other: Model) -> None:
    assert one.named() == one.named().named()
    assert (one.named().version == other.named().version) == (one == other)


GOOD = Model("m-1", 60, (Weight("same_device", 20_000, 500),), 5).as_document()
WEIGHT = {"field": "same_device", "milli_points": 20_000, "neutral": 500}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": ""}, "version must be a text"),
        ({"version": 7}, "version must be a text"),
        ({"bound": -1}, "bound must be a whole number from 0 to 1000"),
        ({"bound": 60.0}, "bound must be"),
        ({"bound": True}, "bound must be"),
        ({"shift": 61}, "shift must be a whole number from -60 to 60"),
        ({"weights": {}}, "weights must be a list"),
        ({"weights": [WEIGHT, WEIGHT]}, "each field once"),
        ({"weights": [{**WEIGHT, "milli_points": -1}]}, r"weights\[0\]\.milli_points must be"),
        ({"weights": [WEIGHT, {**WEIGHT, "neutral": 1_001}]}, r"weights\[1\]\.neutral must be"),
        (
            {"weights": [{**WEIGHT, "field": "surname"}]},
            r"weights\[0\]\.field must be one of customer_logged_in",
        ),
        ({"weights": [{**WEIGHT, "field": []}]}, r"weights\[0\]\.field must be"),
        ({"weights": ["same_device"]}, r"weights\[0\] must be an object with exactly"),
        ({"offset": 1}, "the model must be an object with exactly"),
    ],
)
def test_a_bad_model_is_refused_and_the_error_names_the_place(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadModel, match=says):
        model_of({**GOOD, **change})


@pytest.mark.parametrize("what", [None, [], "model", {}, 1])
def test_a_text_that_is_no_model_is_refused(what: object) -> None:
    with pytest.raises(BadModel, match="the model must be an object"):
        model_of(what)
