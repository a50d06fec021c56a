"""Events: what happened to an order, numbered from 1 without gaps, written with the money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `amount` in cents; `operation` as webhooks name it, or None; `reference` the movement's own."""

    type: str
    amount: int
    operation: str | None = None
    reference: str | None = None
    success: bool = True
    message: str | None = None


# Every event's body begins with these, a test's too; no request has them.
_MARKS = frozenset({"id", "type", "timestamp"})


def is_event_body(body: Mapping[str, object]) -> bool:
    """Whether this is the body of an event, as webhooks carry it."""
    return body.keys() >= _MARKS
