"""The card of a plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanCard:
    """The card that a plan is paid with, as it may be kept: the rail's token, brand and last four digits.

    `card_hash` is the keyed hash of its fingerprint; None where the rail gives none.
    """

    token: str
    brand: str
    last4: str
    card_hash: bytes | None = None
