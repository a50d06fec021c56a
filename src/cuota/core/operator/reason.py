"""The reason that a person gives for the operator's log."""

from __future__ import annotations


def read_reason(typed: str) -> str | None:
    """Return the reason without surrounding spaces and line ends, or None if there is none."""
    return " ".join(typed.split()) or None
