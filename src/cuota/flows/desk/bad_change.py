"""The refusal of a change that a person requested in a dashboard, and the check of the reason that each change needs."""

from __future__ import annotations


class BadChange(Exception):
    """The change cannot be made. `name` is the form's field, or empty. The text says what to do."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


def read_reason(typed: str) -> str:
    """Return the reason without surrounding spaces. Raises BadChange if it is empty."""
    if not (text := " ".join(typed.split())):
        raise BadChange("Say why, in a few words. The audit log keeps the reason.", "reason")
    return text
