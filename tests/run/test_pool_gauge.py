"""The gauge of database sessions has the sessions of every worker, whichever worker answers Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict

from support.commands import on_a_folder
from support.faults.served import fork_servers_of, until, workers_of
from support.serving import serving


def folder_of(parent: int) -> Path:
    """Return the folder in which the workers of a `cuota serve` count."""
    (fork_server,) = fork_servers_of(parent)
    settings = Path(f"/proc/{fork_server}/environ").read_text().split("\0")
    (folder,) = (each for each in settings if each.startswith("PROMETHEUS_MULTIPROC_DIR="))
    return Path(folder.partition("=")[2])


def open_sessions(file: Path) -> float:
    """Return how many open sessions a worker has shown, or 0 if it has shown nothing yet."""
    if not file.exists():
        return 0
    shown = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call]
    return sum(float(value) for key, value, _, _ in shown if "cuota_pool_sessions" in key and '"open"' in key)


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux shows the settings of a process"
)
def test_each_worker_shows_its_database_sessions_without_being_asked() -> None:
    with on_a_folder() as cuota, serving(cuota, "--workers", "2") as (_, process):
        folder = folder_of(process.pid)
        files = [folder / f"gauge_livesum_{worker}.db" for worker in workers_of(process.pid)]
        assert len(files) == 2
        until(lambda: all(open_sessions(file) > 0 for file in files), 30)
