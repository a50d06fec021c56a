"""Writes that follow the result of a request. If such a write fails, the request is still answered with its result."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from cuota.core.refusal import Refused
from cuota.db.pool import BUSY, GONE

# What a call raises if the database is busy, or the connection is lost.
DATABASE_FAILED = (Refused, *BUSY, *GONE)
log = logging.getLogger("cuota.request")


@contextlib.contextmanager
def afterwards(what: str) -> Iterator[None]:
    """Log an error of the `with` block and continue. `what` names what was not written.

    For counts and notes that follow a payment or another result. If the answer became an error, people would repeat an action that succeeded.
    """
    try:
        yield
    except Exception:
        log.exception("not written afterwards", extra={"facts": {"what": what}})
