"""A release imports only packages of requirements.lock, and none of the tests' tools."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from support.commands import Cuota, on_a_folder

ROOT = Path(__file__).resolve().parents[2]
OURS = {"cuota", "cuota_demo"}

SHIPPED = [path for folder in ("src", "demo") for path in sorted((ROOT / folder).rglob("*.py"))]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def installed() -> Mapping[str, list[str]]:
    """Return the packages that install each top-level module. Reading their metadata takes a third of a second."""
    return packages_distributions()


@cache
def locked(name: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / name).read_text(), re.MULTILINE))


def imported(path: Path) -> Iterator[str]:
    """Return the top-level name of every import, including imports inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_import_of_a_release_is_in_its_lock_file(path: Path) -> None:
    ready = locked("requirements.lock")
    for module in set(imported(path)) - OURS - set(sys.stdlib_module_names):
        found = {canonical(name) for name in installed().get(module, [])}
        assert found & ready, f"{path.name} imports {module}, which requirements.lock does not install"


def only_for_tests() -> list[str]:
    """Return the modules that requirements-dev.lock installs and requirements.lock does not."""
    extra = locked("requirements-dev.lock") - locked("requirements.lock")
    return sorted(
        name for name, owners in installed().items() if {canonical(owner) for owner in owners} <= extra
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cuota]:
    """Run the command in a process that cannot import the tests' tools."""
    folder = tmp_path_factory.mktemp("released")
    blocked = only_for_tests()
    assert {"sklearn", "pytest", "hypothesis"} <= set(blocked)
    (folder / "sitecustomize.py").write_text(
        f"import sys\nfor name in {blocked!r}:\n    sys.modules[name] = None\n"
    )
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(folder)
    with on_a_folder() as command:
        yield command
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


def test_the_trial_commands_work_with_the_packages_of_a_release_only(released: Cuota) -> None:
    assert released("migrate").returncode == 0
    assert released("merchant", "create", "--name", "Shop").returncode == 0
    assert released("merchant", "approvals", "Shop", "trial").returncode == 0
    reported = released("approvals", "report", "Shop")
    assert reported.returncode == 0, reported.stderr
    assert "0 orders decided in the trial" in reported.stdout
    refused = released("merchant", "approvals", "Shop", "on")
    assert refused.returncode == 1
    assert "1,000 are needed" in refused.stderr
    assert "install" not in refused.stderr


@pytest.mark.usefixtures("released")
def test_a_model_can_be_fitted_with_the_packages_of_a_release_only() -> None:
    code = (
        "from cuota.trial.logistic import coefficients\n"
        "print(coefficients([[float(n % 7)] for n in range(100)], [n % 7 > 3 or n % 5 == 0 for n in range(100)]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.strip("[]\n")) > 0
    tools = subprocess.run([sys.executable, "-c", "import sklearn"], capture_output=True, check=False)
    assert tools.returncode == 1


@pytest.mark.parametrize("module", ["cuota.cli", "cuota.run.serve", "cuota.run.worker"])
def test_commands_the_parent_process_and_workers_without_a_port_do_not_load_the_web_application(
    module: str,
) -> None:
    """The web application takes a third of the time that a command needs to start, and a part of its memory."""
    loads = f"import sys, {module}; print('cuota.web.app' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
