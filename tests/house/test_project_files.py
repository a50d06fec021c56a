"""The files that a newcomer looks for first: license, security, contributing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_license_is_the_complete_apache_license_and_the_packages_name_it() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert json.loads((ROOT / "sdk" / "package.json").read_text())["license"] == "Apache-2.0"


@pytest.mark.parametrize("name", ["SECURITY.md", "CONTRIBUTING.md"])
def test_the_links_of_a_page_work_and_it_has_no_placeholders(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"TODO|example\.(com|org)|\[.*(insert|your).*\]|@\w+\.\w+", text, re.IGNORECASE)
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / link).exists(), f"{name} links to {link}"
    assert name in (ROOT / "README.md").read_text()


def test_every_make_target_named_in_the_docs_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "docs/proof.md", "docs/running.md"):
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text(), re.MULTILINE):
            assert target in targets, f"{name} names make {target}"


def test_a_wheel_contains_every_folder_of_the_code() -> None:
    source = ROOT / "src"
    folders = {".".join(path.parent.relative_to(source).parts) for path in source.rglob("*.py")}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(set(packages) - {"cuota_demo", "cuota_docs", "cuota.policies"}) == sorted(
        folders - {"cuota.policies"}
    )


def _tracked(*options: str) -> list[str]:
    """Return lines of `git ls-files`. Skip the test if these files are no clone, for example an unpacked archive."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    listed = subprocess.run(
        ["git", "ls-files", *options], check=False, cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip(f"git cannot list the files: {listed.stderr.strip()}")
    return listed.stdout.splitlines()


def test_git_tracks_no_ignored_file_and_no_link() -> None:
    """A link to a folder of one machine breaks every other clone."""
    assert _tracked("--cached", "--ignored", "--exclude-standard") == []
    assert [line for line in _tracked("--stage") if line.startswith("120000")] == []
