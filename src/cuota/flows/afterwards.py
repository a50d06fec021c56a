"""What is written after the result of a request is decided: if that fails, the request is answered with its result all the same."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from cuota.core.refusal import Refused
from cuota.db.pool import BUSY, GONE

# What a call raises if the database was busy, or lost the connection.
DATABASE_FAILED = (Refused, *BUSY, *GONE)
log = logging.getLogger("cuota.request")


@contextlib.contextmanager
def afterwards(what: str) -> Iterator[None]:
    """Log an error of the `with` block and go on. `what` names what is not written then.

    For counts and notes that follow a payment or another result. If the answer became an error, people would repeat what is done.
    """
    try:
        yield
    except Exception:
        log.exception("not written afterwards", extra={"facts": {"what": what}})
