"""deploy/citus.sh says in one line what is missing; tests/deploy/node_deaths.py uses the cluster that it starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "citus.sh"


def refused(folder: Path, **more: str) -> str:
    done = subprocess.run(
        [SCRIPT, folder], env={**os.environ, **more}, capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 3
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


def test_a_folder_without_postgresql_is_named(tmp_path: Path) -> None:
    assert f"PGBIN={tmp_path} has no program named postgres" in refused(tmp_path / "new", PGBIN=str(tmp_path))
    assert not (tmp_path / "new").exists()


def test_a_postgresql_without_citus_is_named_with_what_to_install(tmp_path: Path) -> None:
    for name, text in (("postgres", ""), ("pg_config", f"#!/bin/sh\necho {tmp_path}/share\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    said = refused(tmp_path / "new", PGBIN=str(tmp_path))
    assert f"{tmp_path}/share/extension/citus.control is missing. Install Citus's package" in said


def test_without_arguments_it_explains_itself() -> None:
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "deploy/citus.sh FOLDER [WORKERS]" in done.stderr + done.stdout


@pytest.mark.parametrize("word", ["http://", "https://", "curl", "wget", "apt-get"])
def test_it_fetches_nothing(word: str) -> None:
    assert word not in SCRIPT.read_text()
