"""The primary dies under load: what was acknowledged is there, nothing happened twice, and writes are back in time.

One failover here; `make failovers` runs twenty, of every kind.
"""

from __future__ import annotations

import shutil

import pytest

from tests.deploy.failovers import fail_over

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        shutil.which("pg_autoctl") is None,
        reason="needs Debian's postgresql-15-auto-failover and pg-auto-failover-cli: deploy/standbys.sh installs them",
    ),
]


def test_a_primary_that_dies_under_load_costs_no_acknowledged_operation() -> None:
    run, wrongs = fail_over(1, seed=6)
    assert wrongs == []
    assert [each["kind"] for each in run.struck] == ["kill"]
    assert sum(len(front.captured) for front in run.fronts) > 50
    assert sum(len(front.created) for front in run.fronts) > 50
