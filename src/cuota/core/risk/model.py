"""How many points one merchant's customer data adds to the score, in whole numbers, so that each number can be printed exactly.

Each field has one fixed direction (more is good, or more is bad), which no model can reverse. A missing field adds
nothing. The sum is bounded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, TypeGuard

from cuota.core.risk.approvals import risk_level
from cuota.core.risk.facts import FieldValue

# A feature is a number from 0 to 1, in thousandths. A weight is points, in thousandths.
WHOLE = 1_000
MOST_POINTS = 1_000
LONGEST_VERSION = 60
SHIFT, BOUND = "shift", "bound"


class BadModel(ValueError):
    """The document is not a model as `Model.as_document` writes it. The text says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a field is worth: `milli_points` between its worst and its best value.

    At the value `neutral` (in thousandths) the field adds nothing; a better value adds points, a worse one takes
    points.
    """

    field: str
    milli_points: int
    neutral: int


@dataclass(frozen=True, slots=True)
class Model:
    """The model of one merchant. It never adds or takes more than `bound` points.

    `shift` is added whenever the data says anything that the model knows. It keeps the loss rate at the threshold the
    same as without the data.
    """

    version: str
    bound: int
    weights: tuple[Weight, ...]
    shift: int = 0

    def as_document(self) -> dict[str, object]:
        """Return the model as plain JSON values, which `model_of` reads back exactly."""
        return {**asdict(self), "weights": [asdict(weight) for weight in self.weights]}

    def named(self) -> Model:
        """Return the model with a version made from its numbers: the same numbers have the same version on every machine."""
        numbers = json.dumps(replace(self, version="").as_document(), sort_keys=True)
        return replace(self, version=f"logistic-{hashlib.sha256(numbers.encode()).hexdigest()[:12]}")


class Feature(NamedTuple):
    """How a field is measured, in thousandths (None if it says nothing), and whether more of it is good."""

    measure: Callable[[FieldValue, int], int | None]
    good: bool


def points(
    model: Model, fields: Mapping[str, FieldValue], amount: int
) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return the points for an order of `amount` cents, and the points of each field. They add up exactly.

    The result also names `shift` and, if the sum was cut to the bound, `bound`.
    """
    given = [each for weight in model.weights if (each := _contribution(weight, fields, amount)) is not None]
    if not given:
        return 0, ()
    if model.shift:
        given.append((SHIFT, model.shift))
    total = sum(number for _, number in given)
    bounded = max(-model.bound, min(model.bound, total))
    if bounded != total:
        given.append((BOUND, bounded - total))
    return bounded, tuple(given)


def measured(field: str, fields: Mapping[str, FieldValue], amount: int) -> int | None:
    """Return the value of a field in thousandths, or None if the field is missing or says nothing."""
    value = fields.get(field)
    return None if value is None else FEATURES[field].measure(value, amount)


def model_of(document: object) -> Model:
    """Read what `as_document` wrote. Raises BadModel."""
    given = _object(document, ("version", "bound", "weights", "shift"), "the model")
    version, listed = given["version"], given["weights"]
    if not isinstance(version, str) or not 1 <= len(version) <= LONGEST_VERSION or not version.isprintable():
        raise BadModel(f"version must be a text of 1 to {LONGEST_VERSION} characters")
    if not isinstance(listed, list):
        raise BadModel("weights must be a list")
    bound = _integer(given["bound"], 0, MOST_POINTS, "bound")
    weights = tuple(_weight(each, f"weights[{index}]") for index, each in enumerate(listed))
    if len({weight.field for weight in weights}) < len(weights):
        raise BadModel("weights must name each field once")
    return Model(version, bound, weights, _integer(given["shift"], -bound, bound, "shift"))


def _contribution(weight: Weight, fields: Mapping[str, FieldValue], amount: int) -> tuple[str, int] | None:
    value = measured(weight.field, fields, amount)
    if value is None:
        return None
    above = value - weight.neutral if FEATURES[weight.field].good else weight.neutral - value
    # The product is in millionths of a point, and is rounded to the nearest point.
    return weight.field, (weight.milli_points * above + 500_000) // 1_000_000


def _weight(value: object, where: str) -> Weight:
    given = _object(value, ("field", "milli_points", "neutral"), where)
    field = given["field"]
    if not isinstance(field, str) or field not in FEATURES:
        raise BadModel(f"{where}.field must be one of {', '.join(FEATURES)}")
    # Never below 0. This keeps every field's direction.
    most = MOST_POINTS * WHOLE
    return Weight(
        field,
        _integer(given["milli_points"], 0, most, f"{where}.milli_points"),
        _integer(given["neutral"], 0, WHOLE, f"{where}.neutral"),
    )


def _object(value: object, names: tuple[str, ...], where: str) -> dict[str, object]:
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise BadModel(f"{where} must be an object with exactly {', '.join(names)}")
    return dict(value)


def _integer(value: object, low: int, high: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadModel(f"{where} must be a whole number from {low} to {high}")
    return value


def _is(value: FieldValue, _amount: int) -> int | None:
    return WHOLE * value if isinstance(value, bool) else None


def _more(half: int) -> Callable[[FieldValue, int], int | None]:
    """More is worth more, with diminishing returns: the value `half` is worth half of the maximum."""

    def measure(value: FieldValue, _amount: int) -> int | None:
        return WHOLE * value // (value + half) if _counted(value) else None

    return measure


def _recent(half: int) -> Callable[[FieldValue, int], int | None]:
    """A day is worth less the longer ago it is: today is worth the most, and `half` days ago is worth half of that."""

    def measure(value: FieldValue, _amount: int) -> int | None:
        return WHOLE * half // (value + half) if _counted(value) else None

    return measure


def _above_average(value: FieldValue, amount: int) -> int | None:
    """An amount up to the customer's average is worth 0, twice the average half of the maximum, and a far larger one nearly the maximum."""
    if not _counted(value) or value == 0:
        return None
    return WHOLE * (amount - value) // amount if amount > value else 0


def _level(value: FieldValue, _amount: int) -> int | None:
    level = risk_level(value) if isinstance(value, str) else None
    return None if level is None else WHOLE // 100 * level


def _picked_up(value: FieldValue, _amount: int) -> int | None:
    return {"pickup": WHOLE, "online": 0}.get(value) if isinstance(value, str) else None


def _counted(value: FieldValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


FEATURES: dict[str, Feature] = {
    "customer_logged_in": Feature(_is, good=True),
    "customer_is_member": Feature(_is, good=True),
    # 100 is the highest risk. A merchant whose own score runs the other way must reverse it; until then it gets no
    # weight.
    "merchant_risk_assessment": Feature(_level, good=False),
    "same_device": Feature(_is, good=True),
    # Goods that are picked up are gone within the hour, and there is no delivery address that identifies anybody.
    "fulfillment_method": Feature(_picked_up, good=False),
    "account_creation_date": Feature(_more(180), good=True),
    # A stolen account often looks like this: unused for a year, then a purchase.
    "last_transaction_date": Feature(_recent(90), good=True),
    "customer_transaction_count": Feature(_more(5), good=True),
    "customer_average_order_value": Feature(_above_average, good=False),
    "customer_fraud_incidents": Feature(_is, good=False),
}
