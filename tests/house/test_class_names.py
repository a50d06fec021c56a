"""One class name has one meaning: every public class of Cuota is defined once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import cuota

SRC = Path(cuota.__file__).parent
# The merchant's client imports nothing of the service. What it returns has the name of what it stands for there.
SHARED_WITH_THE_CLIENT = {
    "Endpoint",
    "Event",
    "FieldError",
    "Installment",
    "Movement",
    "Order",
    "Preview",
}


def _places() -> dict[str, list[str]]:
    """Where each public class is defined. A private one is read in its own module alone."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SRC).as_posix())
    return found


def test_every_class_name_is_defined_once() -> None:
    repeated = {name: paths for name, paths in _places().items() if len(paths) > 1}
    allowed = {name: paths for name, paths in repeated.items() if _one_is_the_clients(name, paths)}
    assert repeated == allowed, "give each class a name of its own"


def test_every_name_that_is_allowed_twice_is_still_there_twice() -> None:
    places = _places()
    assert {name for name in SHARED_WITH_THE_CLIENT if len(places[name]) != 2} == set()


def _one_is_the_clients(name: str, paths: list[str]) -> bool:
    of_client = [path for path in paths if path.startswith("client/")]
    return name in SHARED_WITH_THE_CLIENT and len(paths) == 2 and len(of_client) == 1
