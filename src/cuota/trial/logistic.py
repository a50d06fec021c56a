"""Logistic regression with an L2 penalty, by Newton's method. For few columns and many rows, it is exact after a few steps.

It minimizes the sum of the logistic losses plus half the sum of the squared coefficients; the intercept has no penalty.
scikit-learn's LogisticRegression gives the same numbers (a test compares them), but its installation is ten times as large.
"""

from __future__ import annotations

from collections.abc import Sequence

# The largest remaining gradient at the end, divided by the number of rows.
TOLERANCE = 1e-10
MOST_STEPS = 100
MOST_HALVINGS = 40


def coefficients(rows: Sequence[Sequence[float]], outcomes: Sequence[bool]) -> list[float]:
    """Return one coefficient for each column: the change of the log-odds of a true outcome. Both outcomes must occur."""
    # Imported here, so that processes that only serve requests do not load numpy.
    import numpy as np  # noqa: PLC0415

    x = np.column_stack([np.ones(len(rows)), np.asarray(rows, dtype=float)])
    y = np.asarray(outcomes, dtype=float)
    penalty = np.ones(x.shape[1])
    penalty[0] = 0.0

    def cost(at: np.ndarray) -> float:
        linear = x @ at
        return float(np.sum(np.logaddexp(0.0, linear) - y * linear) + 0.5 * np.sum(penalty * at * at))

    found = np.zeros(x.shape[1])
    now = cost(found)
    for _ in range(MOST_STEPS):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (x @ found)))
        slope = x.T @ (chance - y) + penalty * found
        if np.max(np.abs(slope)) <= TOLERANCE * len(y):
            break
        curve = (x * (chance * (1.0 - chance))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        for _ in range(MOST_HALVINGS):
            then = cost(found - step)
            if then <= now:
                break
            step = step / 2
        found, now = found - step, then
    return [float(value) for value in found[1:]]
