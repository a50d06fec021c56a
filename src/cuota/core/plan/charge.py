"""A charge: a card rail is called to collect one installment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

# The reason of a failed charge that never reached the rail. It is not a decline.
NEVER_SENT = "never_sent"


class Origin(StrEnum):
    """Who started a charge. Only a scheduled charge is retried automatically after a failure."""

    CHECKOUT = "checkout"
    SCHEDULE = "schedule"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge for an installment, recorded before the rail is called. `charge_id` is the rail's idempotency key.

    `card_hash` is the keyed hash that identifies the card in all plans. It is None if the rail gives no fingerprint.
    """

    charge_id: UUID
    installment: int
    amount: int
    currency: str
    card_token: str
    card_brand: str
    card_last4: str
    origin: Origin = Origin.CHECKOUT
    card_hash: bytes | None = None
