"""Makes the id of a request. The id is in the X-Request-Id header of the answer, in the error body and in the log."""

from __future__ import annotations

import random
import uuid

# A request id protects nothing, so it may be guessable. Random bytes from the operating system would cost as much time
# as all other work of the edge.
_random = random.Random(uuid.uuid4().int)  # noqa: S311
_FREE, _FIXED = ~(0xF000 << 64 | 0xC000 << 48), 0x4000 << 64 | 0x8000 << 48


def new_request_id() -> str:
    """Return a new id in the form of a version 4 UUID."""
    # The version and the variant of the UUID are fixed bits.
    text = f"{_random.getrandbits(128) & _FREE | _FIXED:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
