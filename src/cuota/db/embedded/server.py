"""The embedded PostgreSQL: one instance for each data folder, shared by all processes that use the folder.

`open_embedded` claims the instance for this process and starts it if it is not running. A separate process
(`supervisor.py`) owns postgres, and stops it about two seconds after the last claim has ended. A claim is a lock that the
kernel frees when the process ends, so a killed process leaves no claim behind.

There are two lock files:

- `supervisor.lock` is locked exclusively by the one running supervisor;
- `users.lock` is locked shared by every user, and exclusively by a supervisor from before it stops postgres until postgres
  has ended.

Why no user is left without a database: A supervisor stops only while it holds `users.lock` exclusively. While we hold that
lock shared, no supervisor begins to stop. A user that arrives while a supervisor is stopping waits for the lock. The
supervisor releases `supervisor.lock` first and `users.lock` last. This is also true if it is killed, because the kernel
closes the lower descriptor first. So once we have our claim, a held `supervisor.lock` means that there is a supervisor that
stays. If there is none, we start one; if several are started at the same moment, the lock lets only one run. If a supervisor
dies between our check and our use of the database, its postgres ends with it. Therefore we check again until postgres has
answered *and* a supervisor was running after that answer.

If a supervisor is killed later, its postgres also ends. The next call of `open_embedded`, even by a process that
already holds a claim, starts both again.
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

# Exit code of a supervisor that found another supervisor running.
SECOND = 3
# The supervisor's first line in the log. The lines after the last such line are about the current start.
STARTED = "Cuota: supervisor started"

_RECOVERY_SECONDS = 600.0
_LOG_BYTES = 10_000_000


class Embedded:
    """A claim of this process on a running embedded PostgreSQL. It is a context manager.

    `dsn_kwargs` are the arguments of `asyncpg.connect` for the database, over the socket.
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
        """Release the claim. After the last claim is released, the supervisor soon stops postgres."""
        if self._claim >= 0:
            # Closing is not enough, because a forked child may hold a copy of the descriptor.
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
    """Claim the PostgreSQL of `data_dir`, start it if necessary, and return when it accepts connections.

    This function blocks, so call it before the event loop starts. `wait` is in seconds. While postgres recovers after a crash,
    the wait continues for up to ten minutes. Raises EmbeddedFailed, which says why and what to do.
    """
    places = prepare(data_dir)
    start = time.monotonic()
    try:
        claim = os.open(places.users_lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EmbeddedFailed(f"Cannot open {places.users_lock} ({error}).") from error
    try:
        _claim(claim, places, start + wait)
        _wait_until_it_accepts(places, start, wait)
    except BaseException:
        os.close(claim)
        raise
    return Embedded(places, claim)


def _claim(claim: int, places: ClusterFiles, deadline: float) -> None:
    """Take the shared lock. If a supervisor is stopping, wait for it until `deadline` (monotonic seconds)."""
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
    """Return when a supervised postgres has answered. Start a supervisor if there is none."""
    launched, pause = False, 0.01
    while True:
        if accepts(places) and _supervised(places):
            return
        if not _supervised(places):
            if launched:  # the supervisor has ended again, and the log says why
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
    """Return whether a running supervisor holds its lock."""
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
    """Start a detached supervisor. Return True if it is the running one, False if another one was faster."""
    if places.log.exists() and places.log.stat().st_size > _LOG_BYTES:
        places.log.replace(places.log.with_suffix(".log.1"))
    # The environment contains only what Python needs. Ours contains secrets, and PG* variables could change the behavior.
    source = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": source}
    # -P: Python must not import from the working folder, which is / here.
    command = [sys.executable, "-P", "-m", "cuota.db.embedded.supervisor", str(places.data_dir)]
    log = os.open(places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        # This returns at once: the supervisor forks when it has its lock, so that we need not reap it.
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
    """Return the last lines in the log about the last start."""
    try:
        text = places.log.read_text(errors="replace")
    except OSError:
        return f"There is no log at {places.log}."
    lines = [line for line in text.rpartition(STARTED)[2].splitlines()[-12:] if line.strip()]
    return "\n".join([f"The end of {places.log}:", *lines])
