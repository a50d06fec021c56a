"""Makes the id of a request. The id is in the X-Request-Id header of the answer, in the error body and in the log."""

from __future__ import annotations

import os
import random
import time
import uuid

# A request id protects nothing, so it may be guessable. Random bytes from the operating system would cost as much time
# as all other work of the edge.
_random = random.Random(uuid.uuid4().int)  # noqa: S311
# Otherwise all forked workers would make the same random bits.
os.register_at_fork(after_in_child=lambda: _random.seed(uuid.uuid4().int))
# The version and the variant of the UUID are fixed bits.
_FIXED = 0x7000 << 64 | 0x8000 << 48
_MILLISECOND = 1_000_000


def new_request_id() -> str:
    """Return a new id in the form of a version 7 UUID: the request log is sorted by it."""
    milliseconds, rest = divmod(time.time_ns(), _MILLISECOND)
    # 12 bits order the ids within a millisecond.
    number = milliseconds << 80 | (rest << 12) // _MILLISECOND << 64 | _FIXED | _random.getrandbits(62)
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
