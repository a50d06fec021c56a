"""The failures that Cuota expects, such as a wrong setting or an unknown name."""

from __future__ import annotations


class ExpectedFailure(Exception):
    """A failure that is no bug. Its text says what is wrong and what to do; a command prints it in one line."""


class WrongUsage(ExpectedFailure):
    """Options of a command that do not fit together, or that lack another option. The command exits with 2."""
