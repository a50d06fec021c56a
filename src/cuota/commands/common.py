"""Code that the one-shot commands share: open the database, run one flow, print the result as text or JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from cuota import config
from cuota.commands.place import announce, called
from cuota.core import money
from cuota.core.expected_failure import ExpectedFailure
from cuota.core.instant import timestamp
from cuota.db.pool import UnsafeDatabase
from cuota.flows.context import Context
from cuota.flows.database_clock import DatabaseClock
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant
from cuota.flows.operator.log_action import OperatorActor, OperatorNote, logged, tell_merchant
from cuota.flows.sandbox.clock import SandboxClock, following
from cuota.run import runtime

T = TypeVar("T")


def require_database() -> None:
    """Raise UnsafeDatabase if the data folder of the settings has no database yet.

    Without this check, a mistyped CUOTA_DATA_DIR would create a new database and look like an empty, healthy service.
    """
    folder = config.missing_database()
    if folder is not None:
        raise UnsafeDatabase(
            f"There is no database in {folder}. Set CUOTA_DATA_DIR or CUOTA_DATABASE_URL to the same value as the service's."
            f" To create a new database, start the service (make run, or {called()} serve), or run: {called()} migrate"
        )


def run(
    flow: Callable[[Context], Awaitable[T]],
    note: Callable[[Context], OperatorNote] | None = None,
    *,
    merchant: str | None = None,
    before: Callable[[Context], Awaitable[dict[str, str]]] | None = None,
) -> T:
    """Run one flow on the service's database and return its result. `note` is written into the operator's log.

    `merchant` is the name or id of the merchant that the flow changes. The note is also written into this merchant's
    own audit log. `before` reads the present values; those that the note changes are written beside the new values.

    Starts the embedded database if it is not running, applies missing migrations, and prints on standard error which
    database and service the command acts on. Raises UnsafeDatabase if there is no database.
    """
    require_database()
    settings = config.load()
    with runtime.database(settings) as where:

        async def go() -> T:
            await runtime.migrated(settings, where)
            await runtime.judged_role(settings, where)
            ticking = SandboxClock() if settings.sandbox else DatabaseClock()
            async with (
                runtime.opened(settings, where, pool_size=2, clock=ticking, decides=False) as context,
                following(ticking, context.pool),
            ):
                await announce(settings, context.pool)
                address = not config.names_its_address()
                served = await runtime.as_served(context, address=address)
                return (
                    await flow(served)
                    if note is None
                    else await _logged(
                        served, flow, await _with_before(served, note(served), before), merchant
                    )
                )

        return asyncio.run(go())


async def _with_before(
    context: Context, note: OperatorNote, before: Callable[[Context], Awaitable[dict[str, str]]] | None
) -> OperatorNote:
    if before is None or note.after is None:
        return note
    known: dict[str, str] = {}
    with contextlib.suppress(ExpectedFailure):  # the flow will raise the error
        known = await before(context)
    return replace(note, before={name: known[name] for name in note.after if name in known} or None)


async def _logged(
    context: Context, flow: Callable[[Context], Awaitable[T]], note: OperatorNote, named: str | None
) -> T:
    # Look up the merchant before the flow, because the flow may change the merchant's name.
    merchant = None
    if named is not None:
        with contextlib.suppress(BadMerchant):  # the flow will raise the error about the name
            merchant = await find_merchant(context, named)
    result = await logged(context, acting(), note, flow)
    if merchant is not None:
        await tell_merchant(context, merchant.merchant_id, note)
    return result


def acting() -> OperatorActor:
    """Return who runs the command, for the operator's log."""
    return OperatorActor(None, user=command_user())


def command_user() -> str:
    """Return the user who runs the command, even under sudo."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def changes(
    action: str, subject: str, reason: str = "", **after: object
) -> Callable[[Context], OperatorNote]:
    """Return the `note` of a command that changes something. Values in `after` that are None are left out."""
    given = {name: worded(value) for name, value in after.items() if value is not None}
    return lambda _: OperatorNote(action, subject, reason, after=given or None)


def worded(value: object) -> str:
    """Return a value as a person reads it in the log."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return timestamp(value)
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def show(options: argparse.Namespace, facts: object, lines: list[str]) -> None:
    """Print for a person, or as JSON with --json."""
    print(json.dumps(facts, indent=2) if options.json else "\n".join(lines))


def one_line(text: str) -> str:
    """Replace control characters with spaces, so that a text from outside cannot control the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def table(facts: dict[str, object]) -> list[str]:
    """Return one line for each name and value, with the values aligned."""
    width = max(len(name) for name in facts)
    return [f"{name:{width}}  {_plain(value)}" for name, value in facts.items()]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def cents(text: str) -> int:
    """Read an option's text as an amount and return it in cents."""
    try:
        found = money.cents_of(text)
    except money.BadAmount:
        raise argparse.ArgumentTypeError(f"{text} is not an amount such as 100.00") from None
    return found
