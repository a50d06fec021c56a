"""Hypothesis settings that all properties share: the same examples every run, no clock, nothing written to disk."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=150)
WALK = settings(
    STEADY, max_examples=150, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)
