"""The process that owns an embedded PostgreSQL: `python -m cuota.db.embedded.supervisor <data folder>`.

`open_embedded` starts it if none is running; its output is the log. It creates the database files, runs postgres as its
child, restarts postgres when it dies, and stops postgres when nobody uses it. `server.py` explains the locks. After SIGTERM
or SIGINT it stops as soon as nobody uses the database, without the usual pause. It does not stop earlier, because that would
break requests in progress.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from cuota.db.embedded.cluster import create, is_forsaken, start, stop, stop_orphan
from cuota.db.embedded.folders import ClusterFiles, EmbeddedFailed, prepare
from cuota.db.embedded.server import SECOND, STARTED

_POLL_SECONDS = 0.25
# Seconds without a user before the supervisor stops. Commands that follow each other closely then share one start.
_IDLE_SECONDS = 2.0
# Seconds for which postgres may fail to start. A killed postgres leaves its lock file and shared memory for a while.
_RETRY_SECONDS = 30.0
# Seconds for which a postmaster may be without a recovery process. During a change of state that is normal for a moment.
_FORSAKEN_SECONDS = 3.0


def main() -> int:
    """Become the supervisor of the folder on the command line. Return the exit code.

    0: this process was the launcher and the supervisor runs on, or the supervisor ended normally. 1: it failed, and the log
    says why. SECOND: another supervisor is running.
    """
    places = prepare(Path(sys.argv[1]))
    lock = os.open(places.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    if not _alone(lock):
        return SECOND
    _write(f"{STARTED}\n")
    if os.fork():
        # The child holds the lock too, so the lock is never free in between. The process that waits for us then continues. It is
        # not the child's parent, so it need not reap the child.
        os._exit(0)
    try:
        with contextlib.suppress(OSError):
            # Overwrite the previous content. On a full disk, space that is freed may not be available again.
            os.pwrite(lock, f"{os.getpid():<10}\n".encode(), 0)
        _Supervisor(places, lock).run()
    except EmbeddedFailed as error:
        _say(str(error))
        return 1
    except Exception:  # noqa: BLE001 - the log is the only place where anybody can read the error
        traceback.print_exc()
        return 1
    return 0


def _alone(lock: int) -> bool:
    """Take the supervisor's lock. Retry for a moment, because a user that checks the lock holds it for microseconds."""
    for _ in range(10):
        if _locked(lock):
            return True
        time.sleep(0.02)
    return False


def _locked(lock: int) -> bool:
    """Try to take the exclusive lock, and return whether that succeeded."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _say(text: str) -> None:
    _write(f"{time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())} [{os.getpid()}] Cuota: {text}\n")


def _write(text: str) -> None:
    """Write to the log. If the disk is full, continue without it."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), text.encode())


class _Supervisor:
    """Runs one supervisor, from the first start of postgres until nobody uses the database."""

    def __init__(self, places: ClusterFiles, lock: int) -> None:
        self._places = places
        self._lock = lock
        # Opened after supervisor.lock, because the kernel closes the files in this order: see `server.py`.
        self._users = os.open(places.users_lock, os.O_RDWR | os.O_CREAT, 0o600)
        self._asked_to_stop = False
        self._used_at = time.monotonic()
        self._failing_since: float | None = None
        self._forsaken_since: float | None = None

    def run(self) -> None:
        """Return when no process uses the database anymore. Raises EmbeddedFailed if postgres does not start."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        stop_orphan(self._places)
        if not self._places.pg.exists():
            create(self._places, self._lock)
        postgres = start(self._places)
        while not self._is_unused():
            time.sleep(_POLL_SECONDS)
            if postgres.poll() is not None:
                self._note_failure(postgres)
                postgres = start(self._places)
            elif self._places.postmaster() == (postgres.pid, "ready"):
                # The state stays "ready" while postgres recovers from a crash of one of its children.
                self._failing_since = None
            if postgres.poll() is None and self._is_forsaken(postgres.pid):
                _say("postgres waits for a recovery that no process is running")
                postgres.kill()
        if postgres.poll() is None:
            stop(postgres.pid, lambda: postgres.poll() is not None)
        # This order matters: a process that gets a claim after this must find no supervisor. See `server.py`.
        os.close(self._lock)
        os.close(self._users)

    def _ask_to_stop(self, *_: object) -> None:
        self._asked_to_stop = True

    def _is_unused(self) -> bool:
        """Return whether nobody has used the database for long enough. If True, nobody can use it until we have ended.

        Each check takes and frees the lock. A user that arrives at that instant tries again.
        """
        now = time.monotonic()
        if not _locked(self._users):
            self._used_at = now
        elif self._asked_to_stop or now - self._used_at >= _IDLE_SECONDS:
            return True
        else:
            fcntl.flock(self._users, fcntl.LOCK_UN)
        return False

    def _is_forsaken(self, pid: int) -> bool:
        """Return whether the postmaster has been without a recovery process for longer than a change of state takes."""
        now = time.monotonic()
        if self._places.postmaster()[1] == "stopping" or not is_forsaken(pid):
            self._forsaken_since = None
            return False
        self._forsaken_since = self._forsaken_since or now
        return now - self._forsaken_since > _FORSAKEN_SECONDS

    def _note_failure(self, postgres: subprocess.Popen[bytes]) -> None:
        """Log that postgres ended. Raises EmbeddedFailed if postgres has not been ready for too long."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        _say(f"postgres ended by itself with code {postgres.returncode}")
        if now - self._failing_since > _RETRY_SECONDS:
            raise EmbeddedFailed("postgres does not start; its own messages above say why.")


if __name__ == "__main__":
    sys.exit(main())
