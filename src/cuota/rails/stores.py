"""What a rail is given to keep data of its own: a database, and a vault. The service's pool and vault fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class RailDatabase(Protocol):
    """A database that a rail may keep tables of its own in."""

    async def fetchrow(self, sql: str, *values: object) -> Mapping[str, Any] | None:
        """One row or None."""
        ...

    async def fetch(self, sql: str, *values: object) -> Sequence[Mapping[str, Any]]:
        """All rows."""
        ...

    async def execute(self, sql: str, *values: object) -> str:
        """Run one statement."""
        ...


class RailVault(Protocol):
    """What keeps secrets unreadable in that database."""

    def encrypt(self, text: str, bound_to: str) -> bytes:
        """Encrypt a text. `bound_to` names the row: decrypting for another row fails."""
        ...

    def decrypt(self, stored: bytes, bound_to: str) -> str:
        """The text that was encrypted for the same row."""
        ...

    def hash(self, use: str, text: str) -> bytes:
        """A keyed hash; another `use` gives another hash of the same text."""
        ...
