"""A plan, as the consumer agreed to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from cuota.core.consumer import Profile, ShippingAddress


@dataclass(frozen=True, slots=True)
class Plan:
    """What the consumer agreed to: fixed, with the hash of the words and numbers that were shown."""

    consumer_id: UUID
    payer: Profile
    phone: str
    time_zone: str
    first_day: date
    agreement: str
    agreement_hash: str
    agreed_at: datetime
    shipping: ShippingAddress | None = None
    browser: bytes | None = None  # the session that pressed the button: it alone is shown a virtual card
    card_hash: bytes | None = None  # of the card that is asked, as PlanCard has it
