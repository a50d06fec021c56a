"""Machines are replaced one after another under load: nothing is lost or doubled.

This test replaces machines by others of the same release; `python tests/deploy/upgrade.py FOLDER` begins with an earlier one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.upgrade import upgraded

pytestmark = pytest.mark.faults


def test_nothing_is_lost_or_applied_twice_while_machines_are_replaced_under_load() -> None:
    assert upgraded(Path(__file__).parents[2], seconds=1, seed=1) == []
