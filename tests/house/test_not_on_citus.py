"""The list of tests that cannot run on a Citus cluster names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.db.not_on_citus import BEGINNINGS

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("start", BEGINNINGS)
def test_each_exception_on_a_cluster_names_an_existing_test(start: str) -> None:
    file, _, name = start.partition("::")
    text = (TESTS / file).read_text()
    assert re.search(rf"^(async )?def {re.escape(name.partition('[')[0])}", text, re.MULTILINE)
