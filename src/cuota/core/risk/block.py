"""A block: the operator takes no new orders from a consumer. The consumer can still pay what is owed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from uuid import UUID
from zoneinfo import ZoneInfo


class BlockKind(StrEnum):
    """Why a consumer is blocked. A decline must give the consumer a specific reason (12 CFR 1002.9), so the kinds are few and fixed."""

    IDENTITY = "identity"
    MISUSE = "misuse"
    UNPAID = "unpaid"
    OWN_REQUEST = "own_request"


# The texts for the operator's team.
BLOCK_WORDS = {
    BlockKind.IDENTITY: "We could not confirm who the consumer is",
    BlockKind.MISUSE: "Activity that nobody could explain, such as a stolen phone or card",
    BlockKind.UNPAID: "Money from earlier plans was not paid as agreed",
    BlockKind.OWN_REQUEST: "The consumer asked for it",
}


def reason_code(kind: str) -> str:
    """Return the reason of a decision that declines an order because of a block."""
    return f"blocked_{kind}"


BLOCK_CODES = tuple(reason_code(kind) for kind in BlockKind)


def block_until(day: date) -> datetime:
    """Return when a block until a given day ends: at the start of that day, in the time zone of the dashboards."""
    return datetime.combine(day, time(0), ZoneInfo("America/New_York"))


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `until` is when it expires, `ended_at` when somebody ended it. `reason` is encrypted; None after an erasure."""

    block_id: UUID
    kind: BlockKind
    reason: bytes | None
    blocked_at: datetime
    blocked_by: str
    until: datetime | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None

    def holds(self, now: datetime) -> bool:
        """Return whether the block is in force."""
        return self.ended_at is None and (self.until is None or self.until > now)
