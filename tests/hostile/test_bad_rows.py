"""The list of inputs that break payment services, `bad_inputs.csv`: one test a row, answered as the row says.

Where the service's decisions say otherwise than a row, theirs holds: the table is in `decided.py`. A row that another
test of this suite answers whole is listed there with that test, which must be there; it is not tried a second time.
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
    """The tests that a file of this suite has, but for those that are never run."""
    tree = ast.parse((TESTS / file).read_text())
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not any("skip" in ast.unparse(each) for each in node.decorator_list)
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_a_bad_input_is_answered_as_its_row_says(world: World, row: Row) -> None:
    if row.id not in ANSWERED_BY:
        await ASK[row.id](world, row)
        return
    for name in ANSWERED_BY[row.id].tests:
        file, _, test = name.partition("::")
        assert test in names_in(file), f"{row}: answered by {name}, which is not there"


def test_every_row_is_answered_once_and_nothing_else_is_listed() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids)) == 109
    assert set(ids) == ASK.keys() | ANSWERED_BY.keys()
    assert not ASK.keys() & ANSWERED_BY.keys()
    assert set(DECIDED) <= set(ids)
    assert {ask.__module__ for ask in ASK.values()} == {file.__name__ for file in FILES}
