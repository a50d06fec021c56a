"""One name has one meaning: every public class and every public type alias of Cuota is defined once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import cuota

SRC = Path(cuota.__file__).parent
# The merchant's client imports nothing of the service, so it defines these records again, under the same names.
SHARED_WITH_THE_CLIENT = {
    "Balance",
    "Dispute",
    "Endpoint",
    "Event",
    "FieldError",
    "Installment",
    "Movement",
    "Order",
    "Payout",
    "Preview",
    "Statement",
}


def _places() -> dict[str, list[str]]:
    """Return the modules that define each public name. A private name is used only in its own module."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        module = ast.parse(path.read_text())
        classes = [node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
        for name in (*classes, *_aliases(module)):
            if not name.startswith("_"):
                found[name].append(path.relative_to(SRC).as_posix())
    return found


def _aliases(module: ast.Module) -> list[str]:
    """Return the type aliases of a module, such as `Row = tuple[object, ...]`. They are written like class names."""
    return [
        node.targets[0].id
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id[0].isupper()
        and not node.targets[0].id.isupper()
        and isinstance(node.value, ast.Subscript | ast.BinOp)
    ]


def test_every_class_name_and_every_type_alias_is_defined_once() -> None:
    repeated = {name: paths for name, paths in _places().items() if len(paths) > 1}
    allowed = {name: paths for name, paths in repeated.items() if _one_is_the_clients(name, paths)}
    assert repeated == allowed, "give each class and each type alias a name of its own"


def test_every_name_that_may_be_defined_twice_still_is_defined_twice() -> None:
    places = _places()
    assert {name for name in SHARED_WITH_THE_CLIENT if len(places[name]) != 2} == set()


def _one_is_the_clients(name: str, paths: list[str]) -> bool:
    of_client = [path for path in paths if path.startswith("client/")]
    return name in SHARED_WITH_THE_CLIENT and len(paths) == 2 and len(of_client) == 1
