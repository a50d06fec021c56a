"""The folders of an embedded PostgreSQL, the user it runs as, and whether that user can access the folders.

The processes that use the database and its supervisor share this module. It imports little, because both start often.
"""

import hashlib
import os
import pwd
import stat
from pathlib import Path
from typing import NamedTuple

from cuota.core.expected_failure import ExpectedFailure

OWNER = "cuota_owner"
# The database role of the service. It owns no tables.
SERVICE = "cuota_service"
DATABASE = "cuota"
PORT = 5432
# The path of a socket may have 103 bytes on macOS and 107 on Linux. The smaller limit works on both.
_SOCKET_PATH_BYTES = 103


class EmbeddedFailed(ExpectedFailure):
    """The embedded PostgreSQL cannot be used. The text says why, and what to do."""


class SystemUser(NamedTuple):
    """The operating system user that owns the database files and runs postgres."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


class ClusterFiles(NamedTuple):
    """The files of one data folder and the account that runs its postgres."""

    data_dir: Path
    socket: Path
    account: SystemUser

    @property
    def pg(self) -> Path:
        """The database files. This folder exists only after it is complete."""
        return self.data_dir / "pg"

    @property
    def log(self) -> Path:
        """The log of the supervisor and of postgres."""
        return self.data_dir / "postgres.log"

    @property
    def users_lock(self) -> Path:
        """The lock file that every user locks shared, and that a stopping supervisor locks exclusively."""
        return self.data_dir / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """The lock file that the supervisor locks exclusively while it runs. It contains the supervisor's process id."""
        return self.data_dir / "supervisor.lock"

    def postmaster(self) -> tuple[int, str]:
        """The process id and state (starting, ready, stopping) that postgres wrote to its file, or (0, "") without a file.

        If postgres was killed, the file stays. So this is only a hint; only an answer over the socket is proof.
        """
        try:
            lines = (self.pg / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting"
        except (OSError, ValueError, IndexError):
            return 0, ""


def prepare(data_dir: Path) -> ClusterFiles:
    """Create the data folder and the socket folder if necessary, and check their permissions.

    Raises EmbeddedFailed, which names the folder, the user and the solution.
    """
    root = os.geteuid() == 0
    try:
        data_dir.mkdir(mode=0o711 if root else 0o700, parents=True, exist_ok=True)
        data_dir = data_dir.resolve()
        info = data_dir.stat()
        if info.st_uid != os.geteuid() or info.st_mode & stat.S_IWOTH:
            # Another owner could replace files while we use them. If we run as root, that would be dangerous.
            raise EmbeddedFailed(
                f"The data folder {data_dir} must belong to the user that runs Cuota (uid {os.geteuid()}), and no"
                " other user may have write permission. Change its owner and mode, run Cuota as its owner, or set"
                " CUOTA_DATA_DIR to another folder."
            )
        account = _account(data_dir / "pg")
        if root:
            data_dir.chmod(stat.S_IMODE(info.st_mode) | 0o711)
        if blocked := blocked_at(data_dir, account):
            raise EmbeddedFailed(
                f"PostgreSQL cannot run as root. It runs as the user {account.name}, who cannot access"
                f" {blocked} and therefore cannot reach the data folder {data_dir}."
                " Set CUOTA_DATA_DIR=/var/lib/cuota/data (or another folder that is not private),"
                f" or allow access: chmod o+x {blocked}"
            )
        return ClusterFiles(data_dir, _socket_folder(data_dir, account), account)
    except OSError as error:
        raise EmbeddedFailed(
            f"Cannot use the data folder {data_dir} ({error}). Set CUOTA_DATA_DIR to a folder that this user can write."
        ) from error


def _account(pg: Path) -> SystemUser:
    """Return the current user; for root, the owner of the existing database, or else postgres, or else nobody."""
    try:
        if os.geteuid() != 0:
            user = pwd.getpwuid(os.geteuid())
        elif pg.exists() and pg.stat().st_uid != 0:
            user = pwd.getpwuid(pg.stat().st_uid)
        else:
            user = _unprivileged()
    except KeyError as error:
        # initdb and peer authentication both need a name.
        raise EmbeddedFailed(
            f"PostgreSQL needs a user with a name on this system ({error}). Add the user to /etc/passwd (as root:"
            " create a user named postgres), run Cuota as a named user, or set CUOTA_DATABASE_URL."
        ) from error
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return SystemUser(user.pw_name, user.pw_uid, user.pw_gid, tuple(groups))


def _unprivileged() -> pwd.struct_passwd:
    """Return the user postgres, or else nobody. Raises KeyError if neither exists."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def blocked_at(path: Path, account: SystemUser) -> Path | None:
    """Return the first folder on the way to `path`, or `path` itself, that `account` cannot enter or execute.

    This checks mode bits, but not access control lists, which only that user could try.
    """
    path = path.resolve()
    for step in (*reversed(path.parents), path):
        info = step.stat()
        if account.uid == 0:
            continue
        if info.st_uid == account.uid:
            needed = stat.S_IXUSR
        elif info.st_gid in (account.gid, *account.groups):
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not info.st_mode & needed:
            return step
    return None


def _socket_folder(data_dir: Path, account: SystemUser) -> Path:
    """Return the folder of the socket, with mode 0700 and owned by the account. It is in /tmp if the data folder's path is long."""
    folder = data_dir / "socket"
    if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) > _SOCKET_PATH_BYTES:
        # TMPDIR is not used, because every process must use the same folder, whatever its environment contains.
        folder = Path("/tmp", f"cuota-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}")  # noqa: S108
    folder.mkdir(mode=0o700, exist_ok=True)
    # Another user may have created this name in /tmp, so check it without following a link. If it is ours, the sticky bit of
    # /tmp prevents other users from moving it.
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in (os.geteuid(), account.uid):
        raise EmbeddedFailed(
            f"The socket folder {folder} belongs to another user (uid {info.st_uid}). Delete the folder."
        )
    if info.st_uid != account.uid:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    if stat.S_IMODE(info.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder
