"""Workers of a Citus cluster die under load, and shards are moved: no acknowledged operation is lost or
doubled.

This test kills five workers; `python tests/deploy/node_deaths.py` kills fifty. PGBIN is the folder with the
programs of a PostgreSQL that has Citus.
"""

from __future__ import annotations

import pytest

from support.deploy.citus_nodes import has_citus
from tests.deploy.node_deaths import kill_workers, parser

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        not has_citus(), reason="no PostgreSQL with Citus (PGBIN, the folder of its programs)"
    ),
]


def test_no_acknowledged_operation_is_lost_when_workers_die_and_shards_move() -> None:
    run, wrongs = kill_workers(5, 6, parser().parse_args(["--moves", "2"]))
    assert wrongs == []
    assert (len(run.deaths), run.moves) == (5, 2)
    assert {front.node for front in run.fronts} <= {1, 2}
    for front in run.fronts:
        assert len(front.captured) > 5
        assert len(front.created) > 5
