"""What every rail raises when it did not answer."""

from __future__ import annotations


class RailUnavailable(Exception):
    """The rail did not answer. Whether it acted is unknown: ask again under the same key, never blindly.

    Its text goes into logs: it never holds what was sent, nor to whom.
    """
