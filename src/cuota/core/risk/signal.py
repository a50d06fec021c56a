"""Signals: an order's phone, card, address and device as keyed hashes, which can be compared but not read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SignalKind(StrEnum):
    """The kinds of values that several orders may share."""

    PHONE = "phone"
    CARD = "card"
    ADDRESS = "address"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Signal:
    """One value of an order, as a keyed hash."""

    kind: SignalKind
    value_hash: bytes
