"""The plan to which a consumer agreed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from cuota.core.consumer import Profile, ShippingAddress


@dataclass(frozen=True, slots=True)
class Plan:
    """The agreed plan. It never changes. It contains the hash of the agreement that was shown.

    `agreement` is in one of the two forms of core/plan/agreement.py.
    """

    consumer_id: UUID
    payer: Profile
    phone: str
    time_zone: str
    first_day: date
    agreement: str
    agreement_hash: str
    agreed_at: datetime
    shipping: ShippingAddress | None = None
    browser: bytes | None = None  # the checkout session that paid; only this session may see a virtual card
    card_hash: bytes | None = None  # the keyed hash of the card that pays, as in PlanCard
