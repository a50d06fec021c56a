"""All nodes of a Citus cluster are restored to one moment, while storefronts write on every worker.

PGBIN is the folder with the programs of a PostgreSQL that has Citus.
"""

from __future__ import annotations

import pytest

from support.deploy.citus_nodes import has_citus
from tests.deploy.restore_cluster import restore

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        not has_citus(), reason="no PostgreSQL with Citus (PGBIN, the folder of its programs)"
    ),
]


def test_everything_acknowledged_before_the_moment_is_restored_and_nothing_later() -> None:
    restored, problems = restore()
    assert problems == []
    assert {front.node for front in restored.fronts} == {1, 2}
