"""What the stand-in stores in addition to localstripe: cards, customers, and the events that localstripe does not
make."""

from __future__ import annotations

import copy
import secrets
import time
from typing import Any

Json = dict[str, Any]


class Ledger:
    """The data that the parts of the stand-in share."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}
        """The number of each card's PaymentMethod."""
        self.attached: dict[str, str] = {}
        """The customer of each attached PaymentMethod."""
        self.customers: set[str] = set()
        self.deleted: set[str] = set()
        self.events: list[Json] = []
        self.untold: list[Json] = []
        """Events that wait for their delivery to the webhook."""

    def happened(self, kind: str, thing: Json) -> Json:
        """Make an event about an object as it is now."""
        event = {
            "id": f"evt_{secrets.token_hex(12)}", "object": "event", "type": kind, "created": int(time.time()),
            "livemode": False, "data": {"object": copy.deepcopy(thing)},
        }  # fmt: skip
        self.events.append(event)
        self.untold.append(event)
        return event
