"""Makes the id of a request. The id is in the X-Request-Id header of the answer, in the error body and in the log."""

from __future__ import annotations

import random
import uuid

# A request id protects nothing, so a guessable one is fine. Random bytes from the operating system would cost as much time
# as all other work of the edge.
_random = random.Random(uuid.uuid4().int)  # noqa: S311


def new_request_id() -> str:
    """Return a new id in the form of a version 4 UUID."""
    text = f"{_random.getrandbits(122):031x}"
    return f"{text[:8]}-{text[8:12]}-4{text[12:15]}-{'89ab'[int(text[15], 16) % 4]}{text[16:19]}-{text[19:]}"
