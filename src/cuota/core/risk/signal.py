"""Signals: what an order is tried with, as keyed hashes that can be compared and not read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SignalKind(StrEnum):
    """What an order is tried with, that may be seen on others."""

    PHONE = "phone"
    CARD = "card"
    ADDRESS = "address"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that an order is tried with, as a keyed hash."""

    kind: SignalKind
    value_hash: bytes
