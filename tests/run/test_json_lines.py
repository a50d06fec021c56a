"""The process's log has no row of the database: PostgreSQL quotes whole rows in the DETAIL of its errors."""

from __future__ import annotations

import json
import logging
from typing import Any

import asyncpg
import pytest

from cuota.run.json_lines import JsonLines

TABLE = "CREATE TEMP TABLE people (name text, address text, phone text CHECK (phone <> ''))"
INSERT = "INSERT INTO people VALUES ($1, $2, '')"


def logged(problem: BaseException) -> str:
    """Return the trace in the log line of this error."""
    facts = (type(problem), problem, problem.__traceback__)
    record = logging.LogRecord("cuota", logging.ERROR, __file__, 1, "job failed", None, facts)
    trace = json.loads(JsonLines().format(record))["trace"]
    assert isinstance(trace, str)
    return trace


async def refused(where: dict[str, Any], *row: str) -> asyncpg.CheckViolationError:
    """Return PostgreSQL's error about a row."""
    connection = await asyncpg.connect(**where)
    try:
        await connection.execute(TABLE)
        with pytest.raises(asyncpg.CheckViolationError) as problem:
            await connection.execute(INSERT, *row)
        assert row[0] in str(problem.value)
        return problem.value
    finally:
        await connection.close()


ROWS = [("Jane Roe", "1 Elm Street"), ("Jane\nRoe\n\nof", "1 Elm Street\n+1 212 555 0142")]


@pytest.mark.parametrize("row", ROWS, ids=["one line", "several lines"])
async def test_the_trace_of_an_error_has_no_row(own_database: dict[str, Any], row: tuple[str, str]) -> None:
    trace = logged(await refused(own_database, *row))
    assert "violates check constraint" in trace
    assert not [part for part in ("Jane", "Roe", "Elm", "212") if part in trace]


@pytest.mark.parametrize("row", ROWS, ids=["one line", "several lines"])
async def test_the_trace_of_several_errors_at_once_has_no_row_and_every_error(
    own_database: dict[str, Any], row: tuple[str, str]
) -> None:
    first = await refused(own_database, *row)
    more = ExceptionGroup("more", [first, ValueError("the last one")])
    trace = logged(ExceptionGroup("jobs", [first, more]))
    assert trace.count("violates check constraint") == 2
    assert "the last one" in trace
    assert not [part for part in ("Jane", "Roe", "Elm", "212") if part in trace]


async def test_the_trace_shows_the_error_that_followed_the_error_with_the_row(
    own_database: dict[str, Any],
) -> None:
    first = await refused(own_database, *ROWS[1])
    second = RuntimeError("the second one")
    second.__cause__ = first
    trace = logged(second)
    assert "violates check constraint" in trace
    assert "the second one" in trace
    assert "Elm" not in trace
