"""Reads over all merchants, on one PostgreSQL and on a cluster whose nodes are up."""

from __future__ import annotations

import pytest

from cuota.db.cluster.living import LivingNodes
from cuota.db.pool import GONE
from support.own_service import Own

_END = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.mark.plain_postgresql("on a cluster, the statement is tried once more")
async def test_a_lost_session_to_one_server_is_reported_as_such(own: Own) -> None:
    every = LivingNodes(own.context.pool)
    with pytest.raises(GONE):
        await every.fetch(_END)
    assert (every.left_out, every.notice) == ([], None)


async def test_nothing_is_said_while_every_node_answers(own: Own) -> None:
    every = LivingNodes(own.context.pool)
    row = await every.fetchrow("SELECT count(*) AS orders FROM orders")
    assert row is not None
    assert row["orders"] == 0
    assert every.notice is None
