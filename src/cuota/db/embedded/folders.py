"""Where an embedded PostgreSQL lies, as whom it runs, and whether that user gets there.

Shared by the processes that use the database and by its supervisor, so it imports little: both start often.
"""

import hashlib
import os
import pwd
import stat
from pathlib import Path
from typing import NamedTuple

OWNER = "cuota_owner"
# As whom the service works: it owns nothing.
SERVICE = "cuota_service"
DATABASE = "cuota"
PORT = 5432
# A socket's whole path fits into 103 bytes on macOS and 107 on Linux; the smaller holds for both.
_SOCKET_PATH_BYTES = 103


class EmbeddedFailed(Exception):
    """The embedded PostgreSQL cannot be used; the message says why and what to do."""


class SystemUser(NamedTuple):
    """The operating system's user that owns the database files and runs postgres."""

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
        """The cluster's own folder; it exists only once it is complete."""
        return self.data_dir / "pg"

    @property
    def log(self) -> Path:
        """What the supervisor and postgres say."""
        return self.data_dir / "postgres.log"

    @property
    def users_lock(self) -> Path:
        """Locked shared by every user, exclusively by a supervisor that stops."""
        return self.data_dir / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Locked exclusively by the supervisor as long as it lives; holds its process id."""
        return self.data_dir / "supervisor.lock"

    def postmaster(self) -> tuple[int, str]:
        """Process id and state as postgres noted them: starting, ready, stopping; (0, "") if it did not.

        The note of a killed postgres stays, so it is a hint: only an answer over the socket is proof.
        """
        try:
            lines = (self.pg / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting"
        except (OSError, ValueError, IndexError):
            return 0, ""


def prepare(data_dir: Path) -> ClusterFiles:
    """Create the data folder and the socket folder as needed and check who may enter them.

    Raises EmbeddedFailed naming the folder, the user and the cure.
    """
    root = os.geteuid() == 0
    try:
        data_dir.mkdir(mode=0o711 if root else 0o700, parents=True, exist_ok=True)
        data_dir = data_dir.resolve()
        info = data_dir.stat()
        if info.st_uid != os.geteuid() or info.st_mode & stat.S_IWOTH:
            # Another owner could exchange files under our hands, and as root that would be worth a lot.
            raise EmbeddedFailed(
                f"The data folder {data_dir} must belong to the user that runs Cuota (uid {os.geteuid()}) and"
                " be writable to no other. Change its owner and mode, run Cuota as its owner, or set"
                " CUOTA_DATA_DIR to another folder."
            )
        account = _account(data_dir / "pg")
        if root:
            data_dir.chmod(stat.S_IMODE(info.st_mode) | 0o711)
        if blocked := blocked_at(data_dir, account):
            raise EmbeddedFailed(
                f"PostgreSQL does not run as root, and the user it runs as here, {account.name}, may not enter"
                f" {blocked}, so it cannot reach the data folder {data_dir}."
                " Set CUOTA_DATA_DIR=/var/lib/cuota/data (or another folder outside private ones),"
                f" or let others enter it: chmod o+x {blocked}"
            )
        return ClusterFiles(data_dir, _socket_folder(data_dir, account), account)
    except OSError as error:
        raise EmbeddedFailed(
            f"The data folder {data_dir} cannot be used ({error}). Set CUOTA_DATA_DIR to a folder this user may write."
        ) from error


def _account(pg: Path) -> SystemUser:
    """Ourselves; as root the owner of the existing database, else postgres, else nobody."""
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
            f"PostgreSQL needs a user that has a name on this system ({error}). Add it to /etc/passwd (as root:"
            " create a user named postgres), run as a named user, or set CUOTA_DATABASE_URL."
        ) from error
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return SystemUser(user.pw_name, user.pw_uid, user.pw_gid, tuple(groups))


def _unprivileged() -> pwd.struct_passwd:
    """The user postgres or else nobody; raises KeyError."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def blocked_at(path: Path, account: SystemUser) -> Path | None:
    """The first folder on the way to `path`, or `path` itself, that `account` may not enter or execute.

    Reads mode bits, not access control lists: those can only be tried by being that user.
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
    """The folder of the socket, 0700 and the account's; a short one when the data folder's name is long."""
    folder = data_dir / "socket"
    if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) > _SOCKET_PATH_BYTES:
        # Not TMPDIR: every process must come to the same folder, whatever its environment says.
        folder = Path("/tmp", f"cuota-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}")  # noqa: S108
    folder.mkdir(mode=0o700, exist_ok=True)
    # Anyone may have made that name in /tmp before us, so look at it without following a link. Once it is
    # ours, the sticky bit of /tmp keeps others from moving it.
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in (os.geteuid(), account.uid):
        raise EmbeddedFailed(
            f"The socket folder {folder} belongs to somebody else (uid {info.st_uid}): remove it."
        )
    if info.st_uid != account.uid:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    if stat.S_IMODE(info.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder
