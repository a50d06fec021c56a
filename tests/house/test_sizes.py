"""Files and functions stay short, in every language that we write."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "demo", "tests", "bench", "sdk", "reference", "docs", "deploy")
SUFFIXES = {".py", ".yaml", ".yml", ".ts", ".js", ".mjs", ".css", ".html"}
NOT_OURS = {"node_modules", "__pycache__"}
"""Folders of what others wrote, wherever they are."""
COPIED = ROOT / "src/cuota/web/docs/reference"
"""The API reference, which `make reference` copies. The scripts that `make sdk` builds are a few long lines."""
LINES_A_FILE = 300
LINES_A_FUNCTION = 50


def _written() -> Iterator[Path]:
    for folder in FOLDERS:
        for parent, folders, files in os.walk(ROOT / folder):
            # A test in another process may be installing packages there.
            folders[:] = [each for each in folders if each not in NOT_OURS and Path(parent, each) != COPIED]
            yield from (path for path in map(Path(parent).joinpath, files) if path.suffix in SUFFIXES)


def _texts() -> Iterator[tuple[Path, str]]:
    for path in _written():
        # Tests in other processes keep files in these folders for a moment.
        with contextlib.suppress(FileNotFoundError):
            yield path, path.read_text("utf-8")


def test_no_file_has_more_than_300_lines() -> None:
    lines = {path: text.count("\n") for path, text in _texts()}
    assert {path.suffix for path in lines} == SUFFIXES, (
        "A kind of file was not found: mend FOLDERS or SUFFIXES."
    )
    long = sorted(
        f"{path.relative_to(ROOT)}: {count}" for path, count in lines.items() if count > LINES_A_FILE
    )
    assert not long, "Split each of these by subject:\n" + "\n".join(long)


def _functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_python_function_has_more_than_50_lines() -> None:
    long = sorted(
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {length}"
        for path, text in _texts()
        if path.suffix == ".py"
        for function in _functions(text)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > LINES_A_FUNCTION
    )
    assert not long, "Split each of these into named parts:\n" + "\n".join(long)
