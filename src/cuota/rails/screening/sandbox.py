"""The sandbox's screening rail: a short list of invented sanctioned names."""

from __future__ import annotations

from cuota.core.sandbox import SANCTIONED, SanctionedName
from cuota.rails.screening.name_match import THRESHOLD, likeness
from cuota.rails.screening.protocol import NameKind, ScreeningMatch, ScreeningRequest
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

LIST = "sandbox list"
SILENT = "Silent Rail"
"""The rail does not answer for a name with these words, so that people can see what happens then."""


class SandboxScreeningRail:
    """`CUOTA_SCREENING_RAIL=sandbox`."""

    name = "sandbox"

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        del settings, books, vault, now

    async def screen(self, request: ScreeningRequest) -> list[ScreeningMatch]:
        """Return the entries of the list that are possible matches."""
        if SILENT.lower() in request.name.lower():
            raise RailUnavailable("the sandbox's screening rail does not answer for this name")
        company = request.kind is NameKind.COMPANY
        found = [(_score(request.name, entry), entry) for entry in SANCTIONED if entry.company is company]
        return [
            ScreeningMatch(LIST, entry.entry, entry.names[0], score, entry.detail)
            for score, entry in found
            if score >= THRESHOLD
        ]


def _score(name: str, entry: SanctionedName) -> int:
    return max(likeness(name, listed, company=entry.company) for listed in entry.names)
