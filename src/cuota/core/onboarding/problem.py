"""The exception for an onboarding form that is refused."""

from __future__ import annotations


class BadOnboarding(Exception):
    """Nothing was changed. `errors` has a text for each wrong field. The error with an empty name is about the whole form."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors

    @staticmethod
    def of(text: str, name: str = "") -> BadOnboarding:
        """Return the exception for one wrong field, or for the whole form."""
        return BadOnboarding({name: text})
