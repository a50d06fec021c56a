"""Hypothesis settings that all properties share: the same examples every run, no time limit, nothing written to disk.

The suite tries a fifth of the examples; `make faults` sets FAULTS_LONG and tries all of them.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from support.long_run import LONG


def steady(examples: int) -> settings:
    """Try this many examples in `make faults`, and a fifth of them in the suite."""
    return settings(
        derandomize=True, deadline=None, database=None, max_examples=examples if LONG else examples // 5
    )


STEADY = steady(150)
WALK = settings(STEADY, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
