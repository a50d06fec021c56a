"""The lock files match pyproject.toml, have a hash for each package, and name no registry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize(
    ("name", "extras"), [("requirements.lock", ["build"]), ("requirements-dev.lock", ["build", "dev"])]
)
def test_each_lock_file_has_a_fitting_version_of_every_dependency(name: str, extras: list[str]) -> None:
    locked = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))
    wanted = PROJECT["dependencies"] + [item for extra in extras for item in EXTRAS[extra]]
    for requirement in map(Requirement, wanted):
        version = locked.get(requirement.name.lower())
        assert version is not None, f"{name} lacks {requirement.name}: run `make lock`"
        assert requirement.specifier.contains(version), (
            f"{name} has {requirement.name} {version}: run `make lock`"
        )


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_each_lock_file_has_a_hash_of_every_package_and_names_no_index(name: str) -> None:
    text = (ROOT / name).read_text()
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert packages
    assert all("--hash=sha256:" in package for package in packages)
    assert "://" not in text
    assert "--index-url" not in text
