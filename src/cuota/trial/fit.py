"""Fits a merchant's model of Advanced Approvals to the orders of its trial.

The model is plain numbers (core/risk/model), so using a model needs no library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuota.core.risk.model import FEATURES, MOST_POINTS, WHOLE, Model, Weight, measured, points
from cuota.trial.logistic import coefficients
from cuota.trial.trial import TrialOrder, TrialReport, report

FOLDS = 5
# Fewer losses are not enough to judge ten fields, and a field that fewer orders have cannot be judged.
FEWEST_LOSSES = 20
FEWEST_ORDERS = 50
# This many points of the base score are one unit. The coefficient is then so small that the penalty hardly affects it.
_UNIT = 20
# The limits of the scale, in points for one unit of log-odds. The coefficient of the score gives the scale.
_LEAST_SCALE, _MOST_SCALE = 15.0, 150.0


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial's report and its model. The model is None if there were too few losses to fit one."""

    model: Model | None
    report: TrialReport


def trial(orders: Sequence[TrialOrder], *, bound: int, seed: int = 0) -> Trial:
    """Fit the model to all orders. Judge the trial by points that do not depend on the order's own outcome."""
    found = fit(orders, bound=bound)
    judged = report(cross_fitted(orders, bound=bound, seed=seed), bound=bound, seed=seed)
    return Trial(None if found is None else replace(found, shift=judged.shift).named(), judged)


def fit(orders: Sequence[TrialOrder], *, bound: int) -> Model | None:
    """Return a logistic regression of losses on the score and the fields, as weights, or None if there is too little data.

    Only approved orders with a known outcome are used. If a field has the wrong sign, the worst such field is removed and the
    others are fitted again, until all signs are right. The same orders give the same numbers.
    """
    known = [order for order in orders if order.approved and order.matured]
    losses = sum(order.lost for order in known)
    if not FEWEST_LOSSES <= losses <= len(known) - FEWEST_LOSSES:
        return None
    columns, neutral = _columns(known)
    margin = [(order.score - order.threshold) / _UNIT for order in known]
    lost = [order.lost for order in known]
    while True:
        rows = list(zip(margin, *columns.values(), strict=True))
        base, *effects = coefficients(rows, lost)
        # In every column a larger value is better, so a right coefficient is negative: it lowers the odds of a loss.
        wrong = {field: effect for field, effect in zip(columns, effects, strict=True) if effect >= 0}
        if not wrong:
            break
        del columns[max(wrong, key=lambda field: (wrong[field], field))]
    scale = min(_MOST_SCALE, max(_LEAST_SCALE, -_UNIT / base)) if base < 0 else _MOST_SCALE
    weights = (
        Weight(field, min(bound * WHOLE, round(-effect * scale * WHOLE)), neutral[field])
        for field, effect in zip(columns, effects, strict=True)
    )
    return Model("", bound, tuple(weight for weight in weights if weight.milli_points)).named()


def cross_fitted(orders: Sequence[TrialOrder], *, bound: int, seed: int = 0) -> list[TrialOrder]:
    """Return each order with the points of a model that was fitted without the order's group."""
    folds = [_fold(order.group, seed) for order in orders]
    judged = list(orders)
    for fold in range(FOLDS):
        model = fit([order for order, of in zip(orders, folds, strict=True) if of != fold], bound=bound)
        for index, order in enumerate(orders):
            if folds[index] == fold:
                judged[index] = replace(order, points=_points(model, order))
    return judged


def _points(model: Model | None, order: TrialOrder) -> int | None:
    """Return the model's points before shift and bound, or None if the order has no data that the model uses."""
    if model is None:
        return None
    total, given = points(replace(model, bound=MOST_POINTS), order.fields, order.amount)
    return total if given else None


def _fold(group: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{group}".encode()).digest()[:8], "big") % FOLDS


def _columns(known: Sequence[TrialOrder]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return a column for each field that enough orders have and whose values differ, relative to the field's average.

    A larger value is better. The average is neutral: an order without the field counts as average.
    """
    columns: dict[str, list[float]] = {}
    neutral: dict[str, int] = {}
    for field, feature in FEATURES.items():
        values = [measured(field, order.fields, order.amount) for order in known]
        there = [value for value in values if value is not None]
        if len(there) < FEWEST_ORDERS or min(there) == max(there):
            continue
        average = neutral[field] = round(sum(there) / len(there))
        sign = 1 if feature.good else -1
        columns[field] = [0.0 if value is None else sign * (value - average) / WHOLE for value in values]
    return columns, neutral
