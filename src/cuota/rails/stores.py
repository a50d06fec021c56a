"""The database, the vault and the clock that every rail gets. The service's pool and vault implement these interfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

# Returns the current time. The sandbox's clock can be moved.
Clock = Callable[[], datetime]


class RailDatabase(Protocol):
    """A database in which a rail may have its own tables."""

    async def fetchrow(self, sql: str, *values: object) -> Mapping[str, Any] | None:
        """Return one row, or None."""
        ...

    async def fetch(self, sql: str, *values: object) -> Sequence[Mapping[str, Any]]:
        """Return all rows."""
        ...

    async def execute(self, sql: str, *values: object) -> str:
        """Run one statement."""
        ...

    async def append(self, sql: str, *columns: Sequence[object]) -> None:
        """Add rows with a statement whose parameters are arrays. Calls that wait at the same moment run as one."""
        ...


class RailVault(Protocol):
    """Encrypts and hashes secrets for that database."""

    def encrypt(self, text: str, bound_to: str) -> bytes:
        """Encrypt a text. `bound_to` names the row: decrypting for another row fails."""
        ...

    def decrypt(self, stored: bytes, bound_to: str) -> str:
        """Return the text that was encrypted for the same row. Raises ExpectedFailure if this process has no key for it."""
        ...

    def hash(self, use: str, text: str) -> bytes:
        """Return a keyed hash. Another `use` gives another hash of the same text."""
        ...
