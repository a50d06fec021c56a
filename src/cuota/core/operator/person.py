"""A person of the operator's team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.operator.role import OperatorRole


@dataclass(frozen=True, slots=True)
class Operator:
    """A person. `joined_at` is None until the person has signed in for the first time.

    `has_factor`: the person has set up an authenticator app.
    """

    person_id: UUID
    email: str
    name: str
    role: OperatorRole
    invited_at: datetime
    joined_at: datetime | None
    has_factor: bool
