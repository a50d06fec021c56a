"""A session on a cluster distinguishes the death of another node from the death of its own node, by the texts of the errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from cuota.db.hosts import NodeLost
from cuota.db.pool import GONE
from cuota.db.sharded_session import ClusterSession

RAISES = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{0}', MESSAGE = '{1}'; END $$"


@pytest.fixture
async def session(own_database: dict[str, Any]) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(**own_database, connection_class=ClusterSession)
    yield opened
    opened.terminate()


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (
            "08006",
            "connection to the remote node db2:5432 failed with the following error: Connection refused",
        ),
        ("57P01", "terminating connection due to administrator command"),
        ("57P03", "the database system is starting up"),
        ("XX000", "failure on connection marked as essential: db2:5432"),
        ("XX000", "could not receive data from server: Connection reset by peer"),
        ("XX000", "could not send data to server: Broken pipe"),
        ("XX000", "SSL SYSCALL error: EOF detected"),
    ],
)
async def test_an_error_about_another_node_leaves_the_session_usable(
    session: asyncpg.Connection, state: str, text: str
) -> None:
    for run in (session.execute, session.fetchrow):
        with pytest.raises(NodeLost):
            await run(RAISES.format(state, text))
    assert await session.fetchval("SELECT 1") == 1


async def test_a_session_whose_own_node_dies_is_closed_and_its_result_is_unknown(
    session: asyncpg.Connection,
) -> None:
    with pytest.raises(ConnectionError) as lost:
        await session.fetchrow(RAISES.format("XX000", "postmaster was shut down, exiting"))
    assert isinstance(lost.value, GONE)
    assert not isinstance(lost.value, NodeLost)
    assert session.is_closed()


async def test_any_other_error_stays_the_same(session: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="no_over_capture"):
        await session.fetchrow(RAISES.format("23514", "no_over_capture"))
    with pytest.raises(asyncpg.InternalServerError, match="something else"):
        await session.execute(RAISES.format("XX000", "something else"))
