"""The reason that a person gives for an action, as the database can store it."""

from __future__ import annotations

LONGEST_REASON = 500


def printable(text: str) -> str:
    """Return the text without characters that the database cannot store, shortened to the longest reason.

    Line breaks and other white space become spaces. A command may be given bytes that are not text.
    """
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
        for char in text[:LONGEST_REASON].strip()
    )
