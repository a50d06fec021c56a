"""What the one-shot commands share: open the database, run one flow, print it for a person or a script."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from cuota import config
from cuota.commands.place import announce, called
from cuota.core import money
from cuota.db.pool import UnsafeDatabase
from cuota.flows.context import Context, utc_now
from cuota.flows.sandbox.clock import SandboxClock, following
from cuota.run import runtime

EXIT_CODES = (
    "Exit codes: 0 done; 1 not done, or something disagrees (the reason is on standard error); 2 wrong use."
)
T = TypeVar("T")
Command = Callable[[argparse.Namespace], int]
Add = Callable[..., argparse.ArgumentParser]


def adder(under: Any) -> Add:
    """A function that adds one command: `add(name, command, text, json=True)`."""

    def add(name: str, command: Command, text: str, *, json: bool = True) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = under.add_parser(
            name, help=text, description=f"{text}.", epilog=EXIT_CODES
        )
        parser.set_defaults(command=command)
        if json:
            parser.add_argument("--json", action="store_true", help="print JSON for scripts")
        return parser

    return add


def require_database() -> None:
    """A mistyped folder must not look like an empty, healthy service, nor become one. Raises UnsafeDatabase."""
    folder = config.missing_database()
    if folder is not None:
        raise UnsafeDatabase(
            f"There is no database in {folder}. Set CUOTA_DATA_DIR or CUOTA_DATABASE_URL to where the service keeps its own."
            f" For a new one start the service (make run, or {called()} serve), or run: {called()} migrate"
        )


def run(flow: Callable[[Context], Awaitable[T]]) -> T:
    """One flow on the service's database, migrated, and started if need be. Says on standard error which one it is."""
    require_database()
    settings = config.load()
    with runtime.database(settings) as where:

        async def go() -> T:
            await runtime.migrated(settings, where)
            await runtime.judged_role(settings, where)
            clock = SandboxClock() if settings.sandbox else None
            now = clock.now if clock else utc_now
            async with (
                runtime.opened(settings, where, pool_size=2, now=now, decides=False) as context,
                following(clock, context.pool),
            ):
                await announce(settings, context.pool)
                address = not config.names_its_address()
                return await flow(await runtime.as_served(context, address=address))

        return asyncio.run(go())


def show(options: argparse.Namespace, facts: object, lines: list[str]) -> None:
    """Print for a person, or as JSON with --json."""
    print(json.dumps(facts, indent=2) if options.json else "\n".join(lines))


def table(facts: dict[str, object]) -> list[str]:
    """Names and values, aligned."""
    width = max(len(name) for name in facts)
    return [f"{name:{width}}  {_plain(value)}" for name, value in facts.items()]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def cents(text: str) -> int:
    """An amount in cents, as an option."""
    try:
        found = money.cents_of(text)
    except money.BadAmount:
        raise argparse.ArgumentTypeError(f"{text} is not an amount such as 100.00") from None
    return found
