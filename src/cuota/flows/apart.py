"""Keeps the failures of a job apart: what fails for one merchant does not stop the work for the others."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from uuid import UUID

from cuota.core.refusal import Refused
from cuota.db.pool import GONE

log = logging.getLogger("cuota.work")


@contextlib.contextmanager
def apart(what: str, merchant_id: UUID | None = None) -> Iterator[None]:
    """Log an error of the `with` block and continue. `what` names the work, which the job tries again in its next run.

    Without `merchant_id`, the work is one part of a job whose other parts do not depend on it.
    """
    facts = {} if merchant_id is None else {"merchantId": str(merchant_id)}
    try:
        yield
    except (Refused, *GONE):
        log.warning("%s waits", what, extra={"facts": facts})
    except Exception:
        log.exception("%s failed", what, extra={"facts": facts})
