"""Calls the screening rail with a timeout, and checks its answers."""

from __future__ import annotations

from cuota.rails.bounded import SECONDS, within
from cuota.rails.screening.protocol import ScreeningMatch, ScreeningRail, ScreeningRequest
from cuota.rails.unavailable import RailUnavailable

MOST_MATCHES = 50
_LONGEST_KEY, _LONGEST_TEXT = 100, 500


class BoundedScreeningRail:
    """Wraps a ScreeningRail. Raises RailUnavailable after a timeout, an unexpected error, or an invalid answer."""

    def __init__(self, rail: ScreeningRail, seconds: float = SECONDS) -> None:
        self.rail = rail
        self.name = rail.name
        self._seconds = seconds

    async def close(self) -> None:
        """Close the connections of a rail that has a method `close`."""
        close = getattr(self.rail, "close", None)
        if close is not None:
            await close()

    async def screen(self, request: ScreeningRequest) -> list[ScreeningMatch]:
        """Return the possible matches, the most similar first, at most MOST_MATCHES."""
        found = await within(self.rail.screen(request), self._seconds)
        if not isinstance(found, list) or not all(map(_is_clear, found)):
            # If an invalid answer counted as "no match", a sanctioned person could be approved.
            raise RailUnavailable("the screening rail's answer cannot be read")
        return sorted((_cut(each) for each in found), key=lambda each: -each.score)[:MOST_MATCHES]


def _is_clear(match: object) -> bool:
    return (
        isinstance(match, ScreeningMatch)
        and _is_key(match.list_name)
        and _is_key(match.entry)
        and isinstance(match.listed_name, str)
        and isinstance(match.detail, str)
        and type(match.score) is int
        and 0 <= match.score <= 100
    )


def _is_key(text: object) -> bool:
    return isinstance(text, str) and 1 <= len(text) <= _LONGEST_KEY and text.isprintable()


def _cut(match: ScreeningMatch) -> ScreeningMatch:
    texts = (_printable(match.listed_name), _printable(match.detail))
    return ScreeningMatch(match.list_name, match.entry, texts[0], match.score, texts[1])


def _printable(text: str) -> str:
    return "".join(char for char in text if char.isprintable())[:_LONGEST_TEXT]
