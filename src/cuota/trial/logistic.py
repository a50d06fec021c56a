"""Logistic regression with the usual penalty, by Newton's method: few columns, many rows, exact in some steps.

It minimizes the sum of the logistic losses plus half the sum of the squared coefficients; the intercept has no penalty.
scikit-learn's LogisticRegression finds the same numbers (a test compares them) and is ten times as large to install.
"""

from __future__ import annotations

from collections.abc import Sequence

# The largest slope that is left at the end, for each row.
TOLERANCE = 1e-10
MOST_STEPS = 100
MOST_HALVINGS = 40


def coefficients(rows: Sequence[Sequence[float]], outcomes: Sequence[bool]) -> list[float]:
    """One number for each column: how the log-odds of a true outcome rise with it. Both outcomes must occur."""
    # A process that only serves never pays for this import.
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
