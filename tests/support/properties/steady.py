"""Hypothesis settings that all properties share: the same examples every run, no clock, nothing written to disk.

The suite tries a part of the examples; `make faults` sets FAULTS_LONG and tries all of them.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from support.long_run import LONG


def steady(examples: int, part: int = 5) -> settings:
    """Return settings for `examples` in the long run, and for one `part`th of them in the suite."""
    return settings(
        derandomize=True, deadline=None, database=None, max_examples=examples if LONG else examples // part
    )


STEADY = steady(150)
WALK = settings(STEADY, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
