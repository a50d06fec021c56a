"""`cuota time fork`, `rewind` and `forget`: the whole sandbox copied aside, and gone back to."""

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
# The service's own requests are over by then; a longer wait is for somebody outside the service.
assert LOCK_SECONDS > REQUESTS_END_SECONDS


@dataclass(frozen=True, slots=True)
class Copied:
    """What a fork or rewind came to: rows copied, and what the service's clock says there."""

    name: str
    service_time: datetime
    rows: int


def read_name(text: str) -> str:
    """A fork's name; raises CannotMoveTime."""
    if not _NAME.fullmatch(text):
        raise CannotMoveTime(
            f"{text} cannot be a fork's name. Use up to 31 of a-z, 0-9, _ and -, beginning with a letter."
        )
    return text


async def fork(where: dict[str, Any], name: str, *, replace: bool = False) -> Copied:
    """Copy the sandbox aside. Raises CannotMoveTime where the name is taken, unless it is to be replaced."""
    read_name(name)
    async with clock.connected(where, owner=True) as connection:
        taken = any(there.name == name for there in await forks.read_all(connection))
        if taken and not replace:
            raise CannotMoveTime(f"There is a fork {name} already. Take it anew with --replace.")
        async with moving(where, closed=True), connection.transaction(isolation="repeatable_read"):
            service_time = (await clock.read(connection)).now
            if taken:
                await forks.forget(connection, name)
            rows = await forks.take(connection, name, service_time)
    return Copied(name, service_time, rows)


async def rewind(where: dict[str, Any], name: str) -> Copied:
    """Go back to a fork, the clock included. Raises CannotMoveTime where there is none such or it does not fit."""
    async with clock.connected(where, owner=True) as connection:
        found = await _find(connection, name)
        if found.migrations != await forks.migrations(connection):
            raise CannotMoveTime(
                f"The fork {name} was taken under another release, and its tables do not fit these."
                f" Drop it: cuota time forget {name}"
            )
        async with moving(where, closed=True):
            try:
                async with connection.transaction():
                    await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
                    rows = await forks.go_back(connection, name)
                    # With the tables, or not at all.
                    await clock.set_to(connection, found.service_time)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                raise CannotMoveTime(
                    "Somebody outside the service holds its tables; nothing was changed. Try again."
                ) from None
    return Copied(name, found.service_time, rows)


async def forget(where: dict[str, Any], name: str) -> None:
    """Drop a fork; raises CannotMoveTime where there is none such."""
    async with clock.connected(where, owner=True) as connection:
        await _find(connection, name)
        async with connection.transaction():
            await forks.forget(connection, name)


async def _find(connection: asyncpg.Connection, name: str) -> Fork:
    there = await forks.read_all(connection)
    for found in there:
        if found.name == name:
            return found
    names = ", ".join(found.name for found in there)
    listed = f"There are: {names}." if names else "There is none; take one: cuota time fork NAME"
    raise CannotMoveTime(f"There is no fork {name}. {listed}")
