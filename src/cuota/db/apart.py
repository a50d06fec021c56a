"""Keeps the failures of a job apart: what fails for one merchant does not stop the work for the others, or delay it for long."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from uuid import UUID
from weakref import WeakKeyDictionary

import asyncpg

from cuota.core.refusal import Refused
from cuota.db.pool import GONE, Pool
from cuota.db.session import Session

# A merchant whose row is locked by another session costs a job two seconds (LOCK_SECONDS) at each try. The pause after a
# failed try is this many times longer than the try, so such merchants take at most a sixth of the job's time.
PAUSES = 5
# The lock may be released meanwhile, so no merchant waits longer than this after a failed try.
MOST_PAUSE_SECONDS = 10.0
log = logging.getLogger("cuota.work")


@contextlib.contextmanager
def apart(what: str, merchant_id: UUID | None = None) -> Iterator[None]:
    """Log an error of the `with` block and continue. `what` names the work, which the job tries again later.

    Without `merchant_id`, the work is one part of a job whose other parts do not depend on it.
    """
    facts = {} if merchant_id is None else {"merchantId": str(merchant_id)}
    try:
        yield
    except (Refused, *GONE):
        log.warning("%s waits", what, extra={"facts": facts})
    except asyncpg.LockNotAvailableError:
        log.warning("%s waits for a lock of another session", what, extra={"facts": facts})
    except Exception:
        log.exception("%s failed", what, extra={"facts": facts})


class LateMerchants:
    """The merchants for which one job of this process failed. The job tries them again after all others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._late: list[UUID] = []
        self._pause_until = clock()

    async def each(self, what: str, merchants: Sequence[UUID], act: Callable[[UUID], Awaitable[int]]) -> int:
        """Call `act` for each merchant, and return the sum of the results. `what` names the work in the log.

        After a failure, the late merchants have to wait until the pause is over. The others never wait for the pause.
        """
        done = 0
        for merchant_id in self._in_turn(merchants):
            began = self._clock()
            with apart(what, merchant_id):
                done += await act(merchant_id)
                continue
            self._late.append(merchant_id)
            ended = self._clock()
            self._pause_until = ended + min(PAUSES * (ended - began), MOST_PAUSE_SECONDS)
        return done

    def _in_turn(self, merchants: Sequence[UUID]) -> Iterator[UUID]:
        """Yield the merchants, the late ones last: first the one whose last try is the longest ago."""
        waiting, before = set(merchants), set(self._late)
        self._late = [each for each in self._late if each in waiting]
        yield from (each for each in merchants if each not in before)
        for merchant_id in [each for each in self._late if each in before]:
            if self._clock() < self._pause_until:
                return
            # Another run of the same job may be trying this merchant right now.
            if merchant_id in self._late:
                self._late.remove(merchant_id)
                yield merchant_id


# By the pool and by the job.
_LATE: WeakKeyDictionary[Pool, defaultdict[str, LateMerchants]] = WeakKeyDictionary()


def late_of(session: Session, job: str) -> LateMerchants:
    """Return the merchants for which this job of this process has just failed."""
    if not isinstance(session, Pool):
        return LateMerchants()
    return _LATE.setdefault(session, defaultdict(LateMerchants))[job]
