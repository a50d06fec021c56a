"""The suite does the same in every run: no test draws other examples, or has a time limit that a busy machine reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(path for path in TESTS.rglob("*.py") if "hypothesis" in path.read_text())
SETTINGS = {"STEADY", "WALK", "steady"}


def named(decorator: ast.expr) -> str:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    return call.id if isinstance(call, ast.Name) else ""


def settings_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The decorators of a function, and the settings that `@settings` extends."""
    found = {named(each) for each in function.decorator_list}
    extended = [each for each in function.decorator_list if named(each) == "settings"]
    return found | {part.id for each in extended for part in ast.walk(each) if isinstance(part, ast.Name)}


def properties(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            named(each) == "given" for each in node.decorator_list
        ):
            yield node


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_property_tries_the_same_examples_in_every_run_and_has_no_deadline(path: Path) -> None:
    for function in properties(path):
        assert settings_of(function) & SETTINGS, (
            f"{function.name} draws other examples in every run, and fails if an example takes 200 ms. Decorate it with"
            " STEADY or steady(...) of support/properties/steady.py."
        )


def test_the_rule_finds_the_properties() -> None:
    assert sum(1 for path in FILES for _ in properties(path)) > 50
