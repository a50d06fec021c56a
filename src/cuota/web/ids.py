"""Reads the ids in the path of a request."""

from __future__ import annotations

import re
from uuid import UUID

from cuota.flows.settle import order_not_found

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def guid(text: str) -> UUID:
    """Read a GUID. Any other text raises Refused(order_not_found), because no order can have such an id."""
    if not _GUID.fullmatch(text):
        raise order_not_found()
    return UUID(text)
