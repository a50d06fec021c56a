"""Creates, starts and stops the postgres of one data folder. Only its supervisor uses this module."""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

from cuota.db.embedded.folders import DATABASE, OWNER, PORT, SERVICE, ClusterFiles, EmbeddedFailed, SystemUser
from cuota.db.embedded.programs import binaries_for

_PR_SET_PDEATHSIG = 1
# Seconds that a fast shutdown, with its checkpoint, may take before postgres gets an immediate shutdown.
_STOP_SECONDS = 60.0


class _As(TypedDict, total=False):
    """Arguments with which subprocess runs a program as another user."""

    user: int
    group: int
    extra_groups: tuple[int, ...]


def create(places: ClusterFiles, supervisor_lock: int) -> None:
    """Create the database files, all or nothing: in pg.new, which is renamed to pg when complete.

    Raises EmbeddedFailed. The log contains the output of initdb.
    """
    fresh = places.data_dir / "pg.new"
    if fresh.exists():
        shutil.rmtree(fresh)  # an earlier start was killed and left this folder
    fresh.mkdir(mode=0o700)
    programs, account = binaries_for(places.account), places.account
    if os.geteuid() != account.uid:
        os.chown(fresh, account.uid, account.gid)
    locale = ["--locale=C.UTF-8", "-E", "UTF8", "--no-instructions"]
    access = ["--auth-local=peer", "--auth-host=scram-sha-256", "-U", OWNER]
    single = ["--single", "-D", str(fresh), "-c", "exit_on_error=on", "-c", "log_checkpoints=off", "postgres"]
    steps: list[tuple[list[str], bytes]] = [
        ([str(programs / "initdb"), "-D", str(fresh), "-k", *locale, *access], b""),
        ([str(programs / "postgres"), *single], f"CREATE DATABASE {DATABASE};\n".encode()),
    ]
    for command, text in steps:
        # These programs hold a copy of the supervisor's lock. If the supervisor is killed, the next one waits until they have
        # ended too, and never deletes a folder in which they still write.
        done = subprocess.run(  # noqa: S603 - our own command
            command,
            check=False,
            input=text,
            stdout=subprocess.DEVNULL,
            pass_fds=(supervisor_lock,),
            preexec_fn=_dies_with_us(signal.SIGKILL),
            **_as(account),
        )
        if done.returncode:
            raise EmbeddedFailed(f"{Path(command[0]).name} failed with code {done.returncode}.")
    fresh.rename(places.pg)
    folder = os.open(places.data_dir, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def start(places: ClusterFiles) -> subprocess.Popen[bytes]:
    """Start postgres as our child in the foreground, with the same output as ours."""
    _write_access_rules(places)
    postgres = binaries_for(places.account) / "postgres"
    settings = [argument for setting in _settings(places) for argument in ("-c", setting)]
    return subprocess.Popen(  # noqa: S603 - our own command
        [str(postgres), "-D", str(places.pg), *settings],
        stdin=subprocess.DEVNULL,
        preexec_fn=_dies_with_us(signal.SIGINT),  # noqa: PLW1509 - we have one thread
        **_as(places.account),
    )


def _settings(places: ClusterFiles) -> list[str]:
    """Return the settings for the command line. No edited configuration file can override them."""
    # This setting is a list, so the path is quoted: a comma or space in the path is then not a separator.
    socket = str(places.socket).replace('"', '""')
    return [
        "fsync=on",
        "full_page_writes=on",
        "synchronous_commit=on",
        "listen_addresses=",
        f"port={PORT}",
        f'unix_socket_directories="{socket}"',
        "unix_socket_permissions=0700",
        f"hba_file={places.data_dir / 'pg_hba.conf'}",
        f"ident_file={places.data_dir / 'pg_ident.conf'}",
        # 18 worker processes with pools of the usual size, and commands beside them.
        "max_connections=400",
        "shared_buffers=128MB",
        "min_wal_size=128MB",
        "max_wal_size=1GB",
        # Statements that were planned for an empty table are planned again after the table is analyzed, so analyze it soon.
        "autovacuum_naptime=10s",
        "timezone=UTC",
        "lc_messages=C",
        "cluster_name=cuota",
        "log_destination=stderr",
        "logging_collector=off",
        "log_timezone=UTC",
        "log_min_messages=warning",
        "log_checkpoints=off",
        # Logs must not contain personal data, so they contain neither statements nor the DETAIL line with a row's key.
        "log_error_verbosity=terse",
        "log_min_error_statement=panic",
    ]


def _write_access_rules(places: ClusterFiles) -> None:
    """Allow connections over the socket only, for the users that run Cuota and postgres, as the owner or the service role.

    The file is outside the database folder. If we are root, that folder belongs to another user, who could redirect our write
    with a link. The file is written at each start, because the users may have changed.
    """
    names = {places.account.name, pwd.getpwuid(os.geteuid()).pw_name}
    quoted = sorted('"' + name.replace('"', '""') + '"' for name in names)
    texts = {
        "pg_hba.conf": "local all all peer map=cuota\n",
        "pg_ident.conf": "".join(f"cuota {name} {role}\n" for role in (OWNER, SERVICE) for name in quoted),
    }
    for name, text in texts.items():
        file = places.data_dir / name
        # The rules are nearly always unchanged. Then nothing is written, so that a full disk does not prevent the start.
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        file.chmod(0o644)


def _as(account: SystemUser) -> _As:
    """Return the arguments that run a child as `account`. They are empty if we are that user already."""
    if os.geteuid() == account.uid:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": account.groups}


def _dies_with_us(number: signal.Signals) -> Callable[[], None] | None:
    """Return a function for the child that asks the kernel to send it the signal `number` when this process dies.

    Python calls the function after the change of user, which would undo the request, and before the program starts. This works
    only on Linux. On other systems the next supervisor calls `stop_orphan`.
    """
    if os.uname().sysname != "Linux":
        return None
    prctl, supervisor = ctypes.CDLL(None).prctl, os.getpid()

    def step() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != supervisor:  # we died before that call, so the kernel will send no signal
            os._exit(1)

    return step


def stop(pid: int, is_gone: Callable[[], bool]) -> None:
    """Stop the postmaster `pid` cleanly, or immediately if that takes too long. Return when `is_gone` returns True."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            if is_gone():
                return
            time.sleep(0.02)


def stop_orphan(places: ClusterFiles) -> None:
    """Stop a postmaster that a killed supervisor left behind, and remove the files that would prevent the next start."""
    pid = places.postmaster()[0]
    if pid and _is_our_postmaster(pid, places):
        stop(pid, lambda: not _is_our_postmaster(pid, places))
    # After a restart of the machine or container, the process id in the file may belong to another process, often one of ours.
    # Postgres would believe that this process is an earlier server that still runs, and would never start. We have just
    # checked that no postmaster runs. If a backend of a killed postmaster still runs, the shared memory, which postgres finds
    # by the folder, still prevents the start.
    noted = places.postmaster()[0]
    if noted and Path(f"/proc/{noted}").exists() and not _is_our_postmaster(noted, places):
        (places.pg / "postmaster.pid").unlink()
    (places.socket / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)


def is_forsaken(pid: int) -> bool:
    """Return whether the postmaster `pid` waits for a recovery that no process is running. Works only on Linux.

    After a crash, PostgreSQL 18 does not notice if its startup process dies before the recovery has begun to replay the log, for
    example because the disk fails. It then waits forever.
    """
    waits = False
    for role in _roles(pid):
        if role in {b"startup", b"walwriter"}:  # it is recovering, or has recovered
            return False
        waits = waits or role == b"checkpointer"
    return waits


def _roles(pid: int) -> Iterator[bytes]:
    """Yield the roles of the children of the postmaster `pid`, from their process titles."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            title = Path(f"/proc/{child}/cmdline").read_bytes().rstrip(b"\0")
            yield title.rpartition(b": ")[2].split(b" ")[0]


def _is_our_postmaster(pid: int, places: ClusterFiles) -> bool:
    """Return whether the process `pid` is a postgres that was started on this folder. Its children have other titles."""
    if Path("/proc/self/cmdline").exists():
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return arguments[0].endswith(b"/postgres") and os.fsencode(places.pg) in arguments
    shown = subprocess.run(  # noqa: S603
        ["/bin/ps", "-o", "command=", "-p", str(pid)], check=False, capture_output=True, text=True
    ).stdout
    return "/postgres -D" in shown and str(places.pg) in shown
