"""The exception that every rail raises if it does not answer."""

from __future__ import annotations


class RailUnavailable(Exception):
    """The rail did not answer, so it is unknown whether it acted. Repeat the call only with the same idempotency key.

    The text of the exception goes into logs. It never contains the sent text or the recipient.
    """
