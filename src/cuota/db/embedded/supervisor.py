"""The process that owns an embedded PostgreSQL: `python -m cuota.db.embedded.supervisor <data folder>`.

Started by `open_embedded` when there is none; its output is the log. It creates the database files, runs
postgres as its child, starts it again when it dies, and stops it once nobody uses it. `embedded` explains the
locks. SIGTERM and SIGINT ask it to stop as soon as nobody uses the database, without the usual pause: pulling
the database from under requests in progress would help no one.
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
# How long nobody may use it before it stops: commands that follow one another share one start.
_IDLE_SECONDS = 2.0
# How long postgres may fail to come up: a killed one leaves a lock file and shared memory for a while.
_RETRY_SECONDS = 30.0
# How long a postmaster may be without anybody who does its recovery: at a change of states, a moment.
_FORSAKEN_SECONDS = 3.0


def main() -> int:
    """Become the supervisor of the folder named on the command line; the exit code.

    0: this was the launcher, the supervisor lives on, or it has ended as it should; 1: failed, the log says
    why; SECOND: another supervisor is in charge.
    """
    places = prepare(Path(sys.argv[1]))
    lock = os.open(places.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    if not _alone(lock):
        return SECOND
    _write(f"{STARTED}\n")
    if os.fork():
        # The lock is the child's too, so it is never free in between. The user that waits for us goes on,
        # and the child is nobody's: no user has to reap it.
        os._exit(0)
    try:
        with contextlib.suppress(OSError):
            # Over the last one's: what is given up on a full disk may not be had again.
            os.pwrite(lock, f"{os.getpid():<10}\n".encode(), 0)
        _Supervisor(places, lock).run()
    except EmbeddedFailed as error:
        _say(str(error))
        return 1
    except Exception:  # noqa: BLE001 - the log is the only place where anyone can read it
        traceback.print_exc()
        return 1
    return 0


def _alone(lock: int) -> bool:
    """Take the supervisor's lock; tried again for a moment, as a user who just looks holds it for microseconds."""
    for _ in range(10):
        if _locked(lock):
            return True
        time.sleep(0.02)
    return False


def _locked(lock: int) -> bool:
    """Whether the exclusive lock is ours now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _say(text: str) -> None:
    _write(f"{time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())} [{os.getpid()}] Cuota: {text}\n")


def _write(text: str) -> None:
    """To the log, where there is room: who cannot say what happens goes on all the same."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), text.encode())


class _Supervisor:
    """The life of one supervisor, from the first start of postgres to the last user's leaving."""

    def __init__(self, places: ClusterFiles, lock: int) -> None:
        self._places = places
        self._lock = lock
        # Opened after supervisor.lock, for the order in which the kernel closes them: see `embedded`.
        self._users = os.open(places.users_lock, os.O_RDWR | os.O_CREAT, 0o600)
        self._asked_to_stop = False
        self._used_at = time.monotonic()
        self._failing_since: float | None = None
        self._forsaken_since: float | None = None

    def run(self) -> None:
        """Return when nobody uses the database any more; raise EmbeddedFailed when it does not come up."""
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
                # It stays "ready" through a crash of its children and what it does about that.
                self._failing_since = None
            if postgres.poll() is None and self._is_forsaken(postgres.pid):
                _say("postgres waits for a recovery that nobody does")
                postgres.kill()
        if postgres.poll() is None:
            stop(postgres.pid, lambda: postgres.poll() is not None)
        # In this order: who then gets a claim must find no supervisor. See `embedded`.
        os.close(self._lock)
        os.close(self._users)

    def _ask_to_stop(self, *_: object) -> None:
        self._asked_to_stop = True

    def _is_unused(self) -> bool:
        """Whether nobody has used the database for long enough; if so, no one can until we have ended.

        A look takes and frees the lock; a user who comes at that instant tries again.
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
        """Whether that has been so for longer than a change of states takes."""
        now = time.monotonic()
        if self._places.postmaster()[1] == "stopping" or not is_forsaken(pid):
            self._forsaken_since = None
            return False
        self._forsaken_since = self._forsaken_since or now
        return now - self._forsaken_since > _FORSAKEN_SECONDS

    def _note_failure(self, postgres: subprocess.Popen[bytes]) -> None:
        """Say that postgres ended; raise EmbeddedFailed when it has not been ready for too long."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        _say(f"postgres ended by itself with code {postgres.returncode}")
        if now - self._failing_since > _RETRY_SECONDS:
            raise EmbeddedFailed("postgres does not come up; its own messages above say why.")


if __name__ == "__main__":
    sys.exit(main())
