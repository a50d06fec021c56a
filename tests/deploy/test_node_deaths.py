"""Workers of a Citus cluster die under load, and shards are moved: no acknowledged operation is lost or
doubled.

The first test kills five workers; `python tests/deploy/node_deaths.py` kills fifty. PGBIN is the folder with the
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


def test_no_acknowledged_operation_is_lost_when_workers_hang_and_the_other_merchants_are_served() -> None:
    run, wrongs = kill_workers(2, 6, parser().parse_args(["--moves", "0", "--hang"]))
    assert wrongs == []
    for node, began, ended in run.deaths:
        answers = [each for front in run.fronts for each in front.between(began, ended)]
        of_node = [each.status for each in answers if each.node == node]
        # A request that began before the node hung holds up its storefront once.
        assert of_node.count(503) > 2
        assert [each.status for each in answers if each.node != node].count(200) > len(of_node) / 4
