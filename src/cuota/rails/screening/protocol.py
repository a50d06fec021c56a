"""The interface between the service and a company with lists of sanctioned people and companies."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Protocol


class NameKind(StrEnum):
    """The kind of name: of a person or of a company."""

    PERSON = "person"
    COMPANY = "company"


@dataclass(frozen=True, slots=True)
class ScreeningRequest:
    """A name to screen. `born` is a person's date of birth; None for a company."""

    kind: NameKind
    name: str = field(repr=False)
    born: date | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ScreeningMatch:
    """An entry of a list that may be the person or company with this name. `score` is from 0 to 100.

    `list_name` and `entry` identify the entry and never change, so a match that was cleared once is not reported to people
    again. `listed_name` and `detail` help a person to decide: other names, the country, the year of birth.
    """

    list_name: str
    entry: str
    listed_name: str
    score: int
    detail: str = ""


class ScreeningRail(Protocol):
    """The interface of the class in CUOTA_SCREENING_RAIL. The call may raise RailUnavailable.

    The constructor takes what `rails/load.py` gives to every rail: `(settings, books, vault, now)`. `name`
    has 2 to 32 of the characters a-z, 0-9 and _. A rail may also have `async def close(self)`, which is called when the process
    ends.
    """

    name: str

    async def screen(self, request: ScreeningRequest) -> list[ScreeningMatch]:
        """Return every possible match of the name, or an empty list. The rail chooses its own threshold."""
        ...
