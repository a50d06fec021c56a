"""The data of cards that we may store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanCard:
    """The data of a plan's card that we may store: the rail's token, brand and last four digits.

    `card_hash` is the keyed hash of the card's fingerprint, or None if the rail has no fingerprints.
    """

    token: str
    brand: str
    last4: str
    card_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """The data of a card that we may store: the rail's token, brand and last four digits.

    `fingerprint` is the same for the same card, whoever enters it, and does not reveal the number. It is empty if the rail has
    no fingerprints; then uses of the card are not counted.
    """

    token: str
    brand: str
    last4: str
    fingerprint: str = ""
