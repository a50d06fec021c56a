"""The names of a merchant that are screened, and the decisions about possible matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuota.core.onboarding.business import Business
from cuota.core.onboarding.owner import Owner

FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
_MOST_DOUBLINGS = 10


class SubjectKind(StrEnum):
    """The kind of person or business that has the name."""

    LEGAL_NAME = "legal_name"
    TRADING_NAME = "trading_name"
    OWNER = "owner"


SUBJECT_WORDS = {
    SubjectKind.LEGAL_NAME: "Legal name",
    SubjectKind.TRADING_NAME: "Trading name",
    SubjectKind.OWNER: "Owner",
}


@dataclass(frozen=True, slots=True)
class ScreenedName:
    """A name to screen. `born` and `owner_id` are set for an owner."""

    kind: SubjectKind
    name: str = field(repr=False)
    born: date | None = field(default=None, repr=False)
    owner_id: UUID | None = None

    @property
    def key(self) -> str:
        """The text whose hash identifies the subject. Another name or date of birth makes another subject."""
        born = self.born.isoformat() if self.born else ""
        return f"{self.kind}\n{self.owner_id or ''}\n{born}\n{self.name}"


def subjects_of(business: Business | None, owners: Sequence[Owner]) -> list[ScreenedName]:
    """Return the names to screen."""
    found = []
    if business is not None:
        found.append(ScreenedName(SubjectKind.LEGAL_NAME, business.legal_name))
        if business.trading_name:
            found.append(ScreenedName(SubjectKind.TRADING_NAME, business.trading_name))
    people = (
        ScreenedName(SubjectKind.OWNER, each.details.name, each.details.born, each.owner_id)
        for each in owners
    )
    return [*found, *people]


class FindingState(StrEnum):
    """The decision about a possible match."""

    OPEN = "open"
    CLEARED = "cleared"  # the list means another person or company
    CONFIRMED = "confirmed"  # the name belongs to the sanctioned person or company


@dataclass(frozen=True, slots=True)
class Finding:
    """A possible match between a name and an entry of a list. `subject` is the hash of the name."""

    finding_id: UUID
    subject: bytes
    kind: SubjectKind
    owner_id: UUID | None
    list_name: str
    entry: str
    listed_name: str
    detail: str
    score: int
    found_at: datetime
    state: FindingState
    reason: str | None
    decider: str | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True)
class Screening:
    """The last screening of a merchant's names, and its findings about the current names.

    `names` is the hash of all names that were screened, or None if no names were ever screened. `rail` is the rail's name.
    `next_at` is the time of the next screening, and `problem` says why the last attempt failed.
    """

    names: bytes | None
    rail: str | None
    screened_at: datetime | None
    next_at: datetime | None
    problem: str | None
    findings: tuple[Finding, ...] = ()

    def having(self, state: FindingState) -> list[Finding]:
        """Return the findings in this state."""
        return [each for each in self.findings if each.state is state]


NEVER = Screening(None, None, None, None, None)


def retry_at(tries: int, now: datetime) -> datetime:
    """Return when to retry after a rail did not answer: after a minute, then after twice as long each time, at most an hour."""
    doublings: int = min(max(tries - 1, 0), _MOST_DOUBLINGS)
    return now + min(FIRST_WAIT * (1 << doublings), LONGEST_WAIT)
