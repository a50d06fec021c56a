"""Rooms stay small: a file that grows past its size is two files that have not been parted yet."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path for folder in ("src", "demo", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))
]
LINES_A_FILE = 300
LINES_A_FUNCTION = 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_at_most_300_lines_and_a_function_50(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= LINES_A_FILE, (
        f"{path.name} has {lines} lines. Cure: part it by noun; a file is one noun or one verb."
    )
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LINES_A_FUNCTION, (
                f"{node.name} has {length} lines. Cure: name its parts as functions."
            )
