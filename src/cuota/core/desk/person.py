"""A person of a merchant's team, and the rules for a name and an e-mail address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.desk.role import Role

LONGEST_NAME = 100
LONGEST_EMAIL = 254
# Deliberately loose: only an e-mail that arrives proves an address. No spaces, one @, and a dot in the domain.
_EMAIL = re.compile(r"[^@\s<>\"',;]+@[^@\s<>\"',;]+\.[^@\s<>\"',;.]+")


@dataclass(frozen=True, slots=True)
class Person:
    """A person. `joined_at` is None until the person has signed in for the first time.

    `has_factor`: the person has set up an authenticator app.
    """

    merchant_id: UUID
    person_id: UUID
    email: str
    name: str
    role: Role
    invited_at: datetime
    joined_at: datetime | None
    has_factor: bool


def read_email(typed: str) -> str | None:
    """Return the address as it is stored (lower case), or None if the text is not an e-mail address."""
    text = typed.strip().lower()
    return text if len(text) <= LONGEST_EMAIL and text.isprintable() and _EMAIL.fullmatch(text) else None


def read_name(typed: str) -> str | None:
    """Return the name without surrounding spaces, or None if it is empty, too long, or not printable."""
    text = " ".join(typed.split())
    return text if 1 <= len(text) <= LONGEST_NAME and text.isprintable() else None
