"""The primary dies under load: no acknowledged operation is lost, none is applied twice, and writes soon work
again.

This test makes one failover; `make failovers` makes twenty, of every kind.
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


def test_no_acknowledged_operation_is_lost_when_the_primary_dies_under_load() -> None:
    run, wrongs = fail_over(1, seed=6)
    assert wrongs == []
    assert [each["kind"] for each in run.struck] == ["kill"]
    assert sum(len(front.captured) for front in run.fronts) > 50
    assert sum(len(front.created) for front in run.fronts) > 50
