"""A charge: a card rail is asked to take the money of one installment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Origin(StrEnum):
    """Who asked for a charge: only a scheduled one that fails is tried again by itself."""

    CHECKOUT = "checkout"
    SCHEDULE = "schedule"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Charge:
    """A card asked to pay an installment, written down before the rail is called. `charge_id` is the rail's key."""

    charge_id: UUID
    installment: int
    amount: int
    currency: str
    card_token: str
    card_brand: str
    card_last4: str
    origin: Origin = Origin.CHECKOUT
