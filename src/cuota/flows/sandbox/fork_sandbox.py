"""`cuota time fork`, `rewind` and `forget`: save a copy of the whole sandbox, go back to it, delete it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from cuota.db.sandbox import clock, forks
from cuota.db.sandbox.forks import Fork
from cuota.flows.sandbox.move_time import CannotMoveTime, moving
from cuota.flows.sandbox.standstill import REQUESTS_END_SECONDS

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}", re.ASCII)
LOCK_SECONDS = 10
# The service's own requests have ended before this time. A longer wait means that another program holds a lock.
assert LOCK_SECONDS > REQUESTS_END_SECONDS


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a fork or rewind: the number of rows copied, and the time on the service's clock in that copy."""

    name: str
    service_time: datetime
    rows: int


def read_name(text: str) -> str:
    """Check a fork's name and return it. Raises CannotMoveTime if the name is not valid."""
    if not _NAME.fullmatch(text):
        raise CannotMoveTime(
            f"{text} is not a valid name for a fork. Use up to 31 of a-z, 0-9, _ and -, starting with a letter."
        )
    return text


async def fork(where: dict[str, Any], name: str, *, replace: bool = False) -> Copied:
    """Save a copy of the sandbox. Raises CannotMoveTime if a fork has this name already and `replace` is false.

    A sandbox on a Citus cluster is refused too.
    """
    read_name(name)
    async with clock.connected(where, owner=True) as connection:
        await _require_one_database(connection)
        await _is_taken(connection, name, replace=replace)
        async with moving(where, closed=True), connection.transaction(isolation="repeatable_read"):
            # Another process may have made a fork of this name before it let this one go on.
            taken = await _is_taken(connection, name, replace=replace)
            service_time = (await clock.read(connection)).now
            if taken:
                await forks.forget(connection, name)
            rows = await forks.take(connection, name, service_time)
    return Copied(name, service_time, rows)


async def _is_taken(connection: asyncpg.Connection, name: str, *, replace: bool) -> bool:
    """Return whether a fork has this name. Raises CannotMoveTime if one has, and `replace` is false."""
    taken = any(there.name == name for there in await forks.read_all(connection))
    if taken and not replace:
        raise CannotMoveTime(f"There is already a fork {name}. To replace it, add --replace.")
    return taken


async def rewind(where: dict[str, Any], name: str) -> Copied:
    """Go back to a fork, including its clock. Raises CannotMoveTime if there is no such fork, or another release made it."""
    async with clock.connected(where, owner=True) as connection:
        await _require_one_database(connection)
        found = await _find(connection, name)
        if found.migrations != await forks.migrations(connection):
            raise CannotMoveTime(
                f"Another release made the fork {name}, and its tables do not fit this release."
                f" Delete the fork: cuota time forget {name}"
            )
        async with moving(where, closed=True):
            try:
                async with connection.transaction():
                    await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
                    rows = await forks.go_back(connection, name)
                    # Set the clock in the same transaction as the tables.
                    await clock.set_to(connection, found.service_time)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                raise CannotMoveTime(
                    "Another program has locked the service's tables. Nothing was changed. Try again."
                ) from None
    return Copied(name, found.service_time, rows)


async def forget(where: dict[str, Any], name: str) -> None:
    """Delete a fork. Raises CannotMoveTime if there is no fork of this name."""
    async with clock.connected(where, owner=True) as connection:
        await _find(connection, name)
        async with connection.transaction():
            await forks.forget(connection, name)


async def _require_one_database(connection: asyncpg.Connection) -> None:
    # A rewind switches the triggers off for one transaction. Citus does not allow that on distributed tables.
    if await forks.distributed(connection):
        raise CannotMoveTime(
            "A sandbox on a Citus cluster cannot be forked or rewound. Use a sandbox on plain PostgreSQL for that."
        )


async def _find(connection: asyncpg.Connection, name: str) -> Fork:
    there = await forks.read_all(connection)
    for found in there:
        if found.name == name:
            return found
    names = ", ".join(found.name for found in there)
    listed = f"The forks are: {names}." if names else "There are no forks. Make one: cuota time fork NAME"
    raise CannotMoveTime(f"There is no fork {name}. {listed}")
