"""A killed backup leaves a temporary file, which the next backup in the same folder deletes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuota.db.backup.archive import written

WRITES = """
import sys
from pathlib import Path
from cuota.db.backup.archive import written
with written(Path(sys.argv[1])) as aside:
    aside.write_bytes(b"half")
    print("begun", flush=True)
    sys.stdin.read()
"""


@contextmanager
def writing(target: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has begun to write a backup, and that waits."""
    command = (sys.executable, "-c", WRITES, target)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        try:
            yield process
        finally:
            process.kill()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_deletes_what_a_killed_backup_left_in_the_same_folder(tmp_path: Path) -> None:
    with writing(tmp_path / "one.cuota") as process:
        process.kill()
    assert names(tmp_path) == [f".one.cuota.{process.pid}.partial"]
    with written(tmp_path / "two.cuota"):
        assert [name for name in names(tmp_path) if "one" in name] == []
    assert names(tmp_path) == ["two.cuota"]


def test_a_backup_that_is_still_being_written_stays(tmp_path: Path) -> None:
    with writing(tmp_path / "one.cuota") as process, written(tmp_path / "two.cuota"):
        assert f".one.cuota.{process.pid}.partial" in names(tmp_path)


def test_files_of_other_programs_stay(tmp_path: Path) -> None:
    others = [".film.mp4.4711.partial", ".notes.partial", "one.cuota.1.partial"]
    for name in others:
        (tmp_path / name).touch()
    with written(tmp_path / "two.cuota"):
        pass
    assert names(tmp_path) == sorted([*others, "two.cuota"])
