"""Tries each row of `bad_inputs.csv`, a list of inputs that break payment services, and checks the answer that the row
requires.

If one of the service's decisions contradicts a row, the decision applies; `decided.py` lists these rows. It also lists
the rows that another test of this suite covers completely. These rows are not tried again here, but the other test must
exist.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.hostile import rows_body, rows_edge, rows_late, rows_money, rows_signed, rows_token
from support.hostile.decided import ANSWERED_BY, DECIDED
from support.hostile.world import ASK, Row, World, read_rows

TESTS = Path(__file__).parents[1]
ROWS = read_rows()
FILES = (rows_body, rows_edge, rows_late, rows_money, rows_signed, rows_token)


def names_in(file: str) -> set[str]:
    """Return the names of the tests in a file, except those that are always skipped."""
    tree = ast.parse((TESTS / file).read_text())
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not any("skip" in ast.unparse(each) for each in node.decorator_list)
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_each_bad_input_gets_the_answer_that_its_row_requires(world: World, row: Row) -> None:
    if row.id not in ANSWERED_BY:
        await ASK[row.id](world, row)
        return
    for name in ANSWERED_BY[row.id].tests:
        file, _, test = name.partition("::")
        assert test in names_in(file), f"{row}: covered by {name}, which does not exist"


def test_every_row_is_tried_or_covered_exactly_once_and_no_unknown_row_is_listed() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids)) == 109
    assert set(ids) == ASK.keys() | ANSWERED_BY.keys()
    assert not ASK.keys() & ANSWERED_BY.keys()
    assert set(DECIDED) <= set(ids)
    assert {ask.__module__ for ask in ASK.values()} == {file.__name__ for file in FILES}
