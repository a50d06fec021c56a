"""The name of a request: in its answer, in the error body and in the log."""

from __future__ import annotations

import random
import uuid

# It guards nothing, and need not be unguessable: asking the system for random bytes would cost as much as all the rest
# of what the edge does.
_random = random.Random(uuid.uuid4().int)  # noqa: S311


def new_request_id() -> str:
    """A UUID, version 4 in form."""
    text = f"{_random.getrandbits(122):031x}"
    return f"{text[:8]}-{text[8:12]}-4{text[12:15]}-{'89ab'[int(text[15], 16) % 4]}{text[16:19]}-{text[19:]}"
