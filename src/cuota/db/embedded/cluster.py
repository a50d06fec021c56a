"""Creating, starting and stopping the postgres of one data folder; used by its supervisor only."""

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
# Seconds that a fast shutdown, with its checkpoint, may take before postgres is told to drop everything.
_STOP_SECONDS = 60.0


class _As(TypedDict, total=False):
    """What makes subprocess become another user."""

    user: int
    group: int
    extra_groups: tuple[int, ...]


def create(places: ClusterFiles, supervisor_lock: int) -> None:
    """Make the database files, whole or not at all: in pg.new, renamed to pg when complete.

    Raises EmbeddedFailed; what initdb said is in the log.
    """
    fresh = places.data_dir / "pg.new"
    if fresh.exists():
        shutil.rmtree(fresh)  # left by a start that was killed
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
        # They hold a copy of the supervisor's lock: should it be killed, the next one waits until they have
        # ended too, and never removes a folder in which they still write.
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
    """Start postgres as our child, in the foreground, its output going where ours goes."""
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
    """Settings given on the command line, so that no edited file weakens them."""
    # A list setting: quoted, a comma or a space in the path is part of it.
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
        "max_connections=100",
        "shared_buffers=128MB",
        "min_wal_size=128MB",
        "max_wal_size=1GB",
        # Statements that were planned on an empty table are planned anew once it was looked at: soon.
        "autovacuum_naptime=10s",
        "timezone=UTC",
        "lc_messages=C",
        "cluster_name=cuota",
        "log_destination=stderr",
        "logging_collector=off",
        "log_timezone=UTC",
        "log_min_messages=warning",
        "log_checkpoints=off",
        # Logs carry no personal data: neither statements nor the DETAIL that quotes a row's key.
        "log_error_verbosity=terse",
        "log_min_error_statement=panic",
    ]


def _write_access_rules(places: ClusterFiles) -> None:
    """Let in, over the socket only, the user Cuota runs as and the one postgres runs as, as the owner or the service.

    Beside the cluster and not in it: where we are root, that folder is another user's, who could lead our
    writing elsewhere by a link. Written at each start, as the users may have changed.
    """
    names = {places.account.name, pwd.getpwuid(os.geteuid()).pw_name}
    quoted = sorted('"' + name.replace('"', '""') + '"' for name in names)
    texts = {
        "pg_hba.conf": "local all all peer map=cuota\n",
        "pg_ident.conf": "".join(f"cuota {name} {role}\n" for role in (OWNER, SERVICE) for name in quoted),
    }
    for name, text in texts.items():
        file = places.data_dir / name
        # As they are nearly always: a disk without room for two lines keeps no database down then.
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        file.chmod(0o644)


def _as(account: SystemUser) -> _As:
    """The arguments that make a child run as `account`, none where we are that user already."""
    if os.geteuid() == account.uid:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": account.groups}


def _dies_with_us(number: signal.Signals) -> Callable[[], None] | None:
    """A step for the child, before it becomes its program: the kernel sends it `number` when we die.

    Python runs it after the change of user, which would undo it. Linux only; elsewhere `stop_orphan` by the
    next supervisor is all there is.
    """
    if os.uname().sysname != "Linux":
        return None
    prctl, supervisor = ctypes.CDLL(None).prctl, os.getpid()

    def step() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != supervisor:  # died before that call: no signal will come
            os._exit(1)

    return step


def stop(pid: int, is_gone: Callable[[], bool]) -> None:
    """Stop the postmaster `pid` cleanly, harder when it takes too long; return when `is_gone` says so."""
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
    """Stop a postmaster that a killed supervisor left, and remove what would keep the next from starting."""
    pid = places.postmaster()[0]
    if pid and _is_our_postmaster(pid, places):
        stop(pid, lambda: not _is_our_postmaster(pid, places))
    # After a restart of the machine or container the noted number may be another process's, often one of
    # ours, and postgres would take that for its predecessor for ever. Nothing runs, as just seen; should a
    # backend of a killed postmaster linger, the shared memory, found by the folder, still holds the start up.
    noted = places.postmaster()[0]
    if noted and Path(f"/proc/{noted}").exists() and not _is_our_postmaster(noted, places):
        (places.pg / "postmaster.pid").unlink()
    (places.socket / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)


def is_forsaken(pid: int) -> bool:
    """Whether nobody does the recovery that the postmaster `pid` waits for. Known on Linux only.

    PostgreSQL 18 takes no note of a startup process that dies in the recovery after a crash before it redoes
    anything, as it does when the disk fails there, and waits for ever.
    """
    waits = False
    for role in _roles(pid):
        if role in {b"startup", b"walwriter"}:  # that is: it recovers, or has recovered
            return False
        waits = waits or role == b"checkpointer"
    return waits


def _roles(pid: int) -> Iterator[bytes]:
    """What the children of the postmaster `pid` are for, by their titles."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            title = Path(f"/proc/{child}/cmdline").read_bytes().rstrip(b"\0")
            yield title.rpartition(b": ")[2].split(b" ")[0]


def _is_our_postmaster(pid: int, places: ClusterFiles) -> bool:
    """Whether the process `pid` is a postgres started on this folder (its children have other titles)."""
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
