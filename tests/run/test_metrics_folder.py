"""The folder of the metrics is in memory if possible, so that a full disk does not affect it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuota.run import metrics_folder
from cuota.run.metrics_folder import NoMetricsFolder, opened_metrics_folder


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a folder in the place of shared memory, and one for temporary files. Neither exists yet."""
    memory, temporary = tmp_path / "memory", tmp_path / "temporary"
    monkeypatch.setattr(metrics_folder, "SHARED_MEMORY", memory)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    # The block sets the variable. It must be as before after the test.
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    return memory, temporary


def test_the_folder_is_in_shared_memory_and_is_removed_at_the_end(places: tuple[Path, Path]) -> None:
    memory, temporary = places
    memory.mkdir()
    temporary.mkdir()
    with opened_metrics_folder():
        (folder,) = memory.iterdir()
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(folder)
    assert not [*memory.iterdir(), *temporary.iterdir()]


def test_the_next_start_removes_the_folder_of_a_killed_service_and_no_other(
    places: tuple[Path, Path],
) -> None:
    memory, _ = places
    left_behind, foreign = memory / "cuota-metrics-killed", memory / "other"
    for folder in (left_behind, foreign):
        folder.mkdir(parents=True)
        (folder / "counter_1.db").write_bytes(bytes(8))
    with opened_metrics_folder():
        (running,) = (each for each in memory.iterdir() if each not in {left_behind, foreign})
        for folder in (left_behind, foreign, running):
            os.utime(folder, (0, 0))
        with opened_metrics_folder():
            assert {running, foreign} <= set(memory.iterdir())
            assert not left_behind.exists()


def test_without_shared_memory_the_folder_is_among_the_temporary_files(places: tuple[Path, Path]) -> None:
    _, temporary = places
    temporary.mkdir()
    with opened_metrics_folder():
        (folder,) = temporary.iterdir()
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(folder)


def test_without_any_place_the_service_says_what_to_do(places: tuple[Path, Path]) -> None:
    with (
        pytest.raises(NoMetricsFolder, match="Free some space there, or set TMPDIR"),
        opened_metrics_folder(),
    ):
        pass
    assert not places[0].exists()
