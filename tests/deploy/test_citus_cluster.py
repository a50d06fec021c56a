"""deploy/citus.sh prints one line that says what is missing. tests/deploy/node_deaths.py uses the cluster
that the script starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from support.deploy.citus_nodes import Nodes, has_citus
from support.deploy.machines import folder, free_ports, script

SCRIPT = Path(__file__).parents[2] / "deploy" / "citus.sh"


def refused(folder: Path, **more: str) -> str:
    done = subprocess.run(
        [SCRIPT, folder], env={**os.environ, **more}, capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 3
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


def test_the_script_names_a_folder_that_has_no_postgresql(tmp_path: Path) -> None:
    assert f"PGBIN={tmp_path} has no program named postgres" in refused(tmp_path / "new", PGBIN=str(tmp_path))
    assert not (tmp_path / "new").exists()


def test_the_script_says_what_to_install_if_postgresql_has_no_citus(tmp_path: Path) -> None:
    for name, text in (("postgres", ""), ("pg_config", f"#!/bin/sh\necho {tmp_path}/share\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    said = refused(tmp_path / "new", PGBIN=str(tmp_path))
    assert f"{tmp_path}/share/extension/citus.control is missing. Install Citus's package" in said


def test_without_arguments_the_script_prints_its_usage() -> None:
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "deploy/citus.sh FOLDER [WORKERS]" in done.stderr + done.stdout


@pytest.mark.parametrize("word", ["http://", "https://", "curl", "wget", "apt-get"])
def test_the_script_downloads_nothing(word: str) -> None:
    assert word not in SCRIPT.read_text()


@pytest.mark.skipif(not has_citus(), reason="no PostgreSQL with Citus (PGBIN, the folder of its programs)")
def test_a_dead_node_starts_again_if_its_process_id_belongs_to_another_process() -> None:
    with (
        folder() as place,
        subprocess.Popen(["sleep", "600"]) as other,
        script("citus.sh", str(place / "db"), PORT=str(free_ports(3)), REST="1") as cluster,
    ):
        try:
            nodes, pid = Nodes(cluster["url"], place / "db"), place / "db" / "node1" / "pid"
            nodes.kill(1)
            pid.write_text(f"{other.pid}\n")
            asyncio.run(nodes.back(1))
            assert int(pid.read_text()) != other.pid
            assert other.poll() is None
        finally:
            other.kill()
