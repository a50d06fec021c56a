"""An embedded PostgreSQL: one instance per data folder, shared by all our processes that use that folder.

`open_embedded` claims the instance for this process and starts it if it does not run. A separate process
(`supervisor.py`) owns postgres, and stops it about two seconds after the last claim is gone. A claim
is a lock that the kernel frees with the process, so a killed process leaves none behind.

Two lock files carry all of it:

- `supervisor.lock` is held exclusively by the one live supervisor;
- `users.lock` is held shared by every user, and exclusively by a supervisor from before it stops postgres
  until postgres is gone.

Why no user is left without a database: a supervisor stops only while it holds `users.lock` exclusively, so
while we hold it shared none begins to stop. A user that comes while one is stopping waits for the lock. The
supervisor lets go of `supervisor.lock` first and of `users.lock` last (also when it is killed: the kernel
closes the lower descriptor first), so once we have our claim, "is supervisor.lock held?" means "is there a
supervisor that stays?". If not, we start one; of several started at once, the lock lets one live. Should a
supervisor die between our look and our use of it, its postgres goes down with it: we look again until
postgres has answered *and* a supervisor was there after that answer.

A supervisor killed later takes postgres with it. Whoever then calls `open_embedded` again, be it a process
that holds a claim already, starts both again.
"""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from cuota.db.embedded.answer import accepts
from cuota.db.embedded.folders import DATABASE, OWNER, PORT, ClusterFiles, EmbeddedFailed, prepare
from cuota.db.embedded.programs import binaries

__all__ = ["Embedded", "EmbeddedFailed", "binaries", "open_embedded"]

# Exit code of a supervisor that found another one in charge.
SECOND = 3
# The supervisor's first line in the log; the lines after the last one tell about the present start.
STARTED = "Cuota: supervisor started"

_RECOVERY_SECONDS = 600.0
_LOG_BYTES = 10_000_000


class Embedded:
    """A claim of this process on a running embedded PostgreSQL; a context manager.

    `dsn_kwargs` are the arguments of `asyncpg.connect` that reach the database, over the socket.
    """

    def __init__(self, places: ClusterFiles, claim: int) -> None:
        self._claim = claim
        self.dsn_kwargs: dict[str, object] = {
            "host": str(places.socket),
            "port": PORT,
            "user": OWNER,
            "database": DATABASE,
        }

    def close(self) -> None:
        """Drop the claim; when it was the last one, the supervisor stops postgres soon after."""
        if self._claim >= 0:
            # Unlocked and not only closed: a forked child may hold a copy of the descriptor.
            fcntl.flock(self._claim, fcntl.LOCK_UN)
            os.close(self._claim)
            self._claim = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_embedded(data_dir: Path, *, wait: float = 30.0) -> Embedded:
    """Claim the PostgreSQL of `data_dir`, starting it if needed, and return once it accepts connections.

    Blocks, so call it before the event loop starts. `wait` is in seconds; while postgres recovers after a
    crash the wait goes on for up to ten minutes. Raises EmbeddedFailed with the reason and what to do.
    """
    places = prepare(data_dir)
    start = time.monotonic()
    try:
        claim = os.open(places.users_lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EmbeddedFailed(f"{places.users_lock} cannot be opened ({error}).") from error
    try:
        _claim(claim, places, start + wait)
        _wait_until_it_accepts(places, start, wait)
    except BaseException:
        os.close(claim)
        raise
    return Embedded(places, claim)


def _claim(claim: int, places: ClusterFiles, deadline: float) -> None:
    """Take the shared lock, waiting for a stopping supervisor until `deadline` (monotonic seconds)."""
    while True:
        try:
            fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise EmbeddedFailed(
                    f"The previous PostgreSQL of {places.data_dir} is still stopping; try again. {_reason(places)}"
                ) from None
            time.sleep(0.02)
        else:
            return


def _wait_until_it_accepts(places: ClusterFiles, start: float, wait: float) -> None:
    """Return once a supervised postgres has answered; start a supervisor when there is none."""
    launched, pause = False, 0.01
    while True:
        if accepts(places) and _supervised(places):
            return
        if not _supervised(places):
            if launched:  # and gone again: it has written why
                raise EmbeddedFailed(f"PostgreSQL did not start. {_reason(places)}")
            launched = _launch(places)
        waited = time.monotonic() - start
        recovering = places.postmaster()[1] in {"starting", "stopping"}
        if waited > (max(wait, _RECOVERY_SECONDS) if recovering else wait):
            raise EmbeddedFailed(
                f"PostgreSQL did not accept connections within {waited:.0f} s. {_reason(places)}"
            )
        time.sleep(pause)
        pause = min(pause * 1.2, 0.25)


def _supervised(places: ClusterFiles) -> bool:
    """Whether a live supervisor holds its lock."""
    probe = os.open(places.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(probe)


def _launch(places: ClusterFiles) -> bool:
    """Start a supervisor, detached; True when it is the one in charge, False when another was first."""
    if places.log.exists() and places.log.stat().st_size > _LOG_BYTES:
        places.log.replace(places.log.with_suffix(".log.1"))
    # Nothing of our environment but what Python needs: it holds secrets, and PG* variables would mislead.
    source = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": source}
    # -P: the working folder, here /, is no place to import from.
    command = [sys.executable, "-P", "-m", "cuota.db.embedded.supervisor", str(places.data_dir)]
    log = os.open(places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        # It returns at once: the supervisor forks when it has its lock, so that we need not reap it.
        code = subprocess.run(  # noqa: S603 - the command is ours
            command,
            check=False,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ).returncode
    finally:
        os.close(log)
    if code not in {0, SECOND}:
        raise EmbeddedFailed(f"The supervisor of PostgreSQL did not start. {_reason(places)}")
    return code == 0


def _reason(places: ClusterFiles) -> str:
    """The end of what the log says about the last start."""
    try:
        text = places.log.read_text(errors="replace")
    except OSError:
        return f"There is no log at {places.log}."
    lines = [line for line in text.rpartition(STARTED)[2].splitlines()[-12:] if line.strip()]
    return "\n".join([f"The end of {places.log}:", *lines])
