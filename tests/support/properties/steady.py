"""Hypothesis settings that all properties share: the same examples every run, no time limit, nothing written to disk.

The suite tries a part of the examples. `make faults` sets FAULTS_LONG, and so tries all of them.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from support.long_run import LONG


def steady(examples: int, part: int = 5) -> settings:
    """Try this many examples in `make faults`. The suite tries this number divided by `part`."""
    return settings(
        derandomize=True, deadline=None, database=None, max_examples=examples if LONG else examples // part
    )


STEADY = steady(150)
WALK = settings(STEADY, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
