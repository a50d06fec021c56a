"""Import rules beyond the layers in pyproject.toml: core and the client import nothing else of Cuota."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
LIBRARIES_OF_THE_CLIENT = {"httpx"}


def imported(file: Path) -> Iterator[str]:
    """Return the full name of every module that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports by a relative name"
            yield str(node.module)


def files(package: str) -> list[Path]:
    found = sorted((SOURCE / package).rglob("*.py"))
    assert found, f"{package} has no file"
    return found


@pytest.mark.parametrize(("package", "libraries"), [("core", set()), ("client", LIBRARIES_OF_THE_CLIENT)])
def test_core_and_the_client_import_nothing_else_of_cuota_and_no_other_library(
    package: str, libraries: set[str]
) -> None:
    own = f"cuota.{package}"
    for file in files(f"cuota/{package}"):
        for name in imported(file):
            root = name.split(".")[0]
            allowed = (name == own or name.startswith(f"{own}.")) if root == "cuota" else True
            library = root in sys.stdlib_module_names or root == "cuota" or root in libraries
            assert allowed, f"{file.relative_to(SOURCE)} imports {name}, which is outside {own}"
            assert library, f"{file.relative_to(SOURCE)} imports the library {name}"


def test_no_test_imports_from_another_test_module() -> None:
    """Code that several tests share is in tests/support. The programs in tests/deploy are not test modules."""
    tests = Path(__file__).parents[1]
    for file in sorted(tests.rglob("*.py")):
        for name in imported(file):
            programs = ("failovers", "node_deaths", "restore_cluster", "upgrade")
            allowed = not name.startswith("tests.") or name.removeprefix("tests.deploy.") in programs
            assert allowed, (
                f"{file.relative_to(tests)} imports from {name}; move what it needs to tests/support"
            )
