"""`cuota keys rewrap`: encrypts every stored secret with the current secret key, so that an old key can be removed."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from typing import Any

from cuota import config
from cuota.commands.common import acting, require_database, show
from cuota.commands.parsers import Add
from cuota.db.sandbox import clock, forks
from cuota.db.sealed import SEALED, forked
from cuota.flows.context import Context
from cuota.flows.operator.log_action import OperatorNote, log_done
from cuota.flows.secret.rewrap_secrets import Rewrapped, rewrap, who
from cuota.run import runtime

MOST_SHOWN = 20


def _teller(every: float = 1.0) -> Any:
    """Return a function that prints progress on standard error, at most one line in `every` seconds."""
    printed_at = time.monotonic()

    def tell(column: str, seen: int, total: int) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= every:
            printed_at = time.monotonic()
            print(f"cuota: {column}: {seen} of {total}", file=sys.stderr, flush=True)

    return tell


async def _rewrap(settings: config.Settings, where: dict[str, Any]) -> Rewrapped:
    await runtime.migrated(settings, where)
    async with (
        runtime.opened(settings, where, pool_size=2, decides=False) as context,
        contextlib.AsyncExitStack() as stack,
    ):
        places: list[Any] = [(context.pool, place) for place in SEALED]
        places += await _forked(settings, context, where, stack)
        found = await rewrap(context.pool, context.vault, places, _teller())
        await log_done(context.pool, acting(), _note(found))
        return found


def _note(found: Rewrapped) -> OperatorNote:
    counts = {"rewrapped": str(found.rewrapped), "unreadable": str(len(found.unreadable))}
    after = {"key": found.key_id, **counts, "oldKeysCanBeRemoved": "yes" if found.done else "no"}
    return OperatorNote("keys.rewrap", "The encrypted secrets", "", after=after)


async def _forked(
    settings: config.Settings, context: Context, where: dict[str, Any], stack: contextlib.AsyncExitStack
) -> list[Any]:
    """Return the encrypted columns in the forks of the sandbox. Only the owner of the database can change those."""
    if not settings.sandbox or not await forks.read_all(context.pool):
        return []
    owner = await stack.enter_async_context(clock.connected(runtime.owner(settings, where), owner=True))
    return [(owner, place) for place in await forked(owner)]


def keys_rewrap(options: argparse.Namespace) -> int:
    """`cuota keys rewrap`: exit 1 while an old key is still needed."""
    require_database()
    settings = config.load()
    with runtime.database(settings) as where:
        found = asyncio.run(_rewrap(settings, where))
    facts = {
        "keyId": found.key_id,
        "secrets": found.held,
        "rewrapped": found.rewrapped,
        "unreadable": found.unreadable,
        "otherProcesses": [
            {"process": who(name), "sessions": sessions} for name, sessions in found.others.items()
        ],
        "oldKeysCanBeRemoved": found.done,
    }
    show(options, facts, _words(found, old_keys=bool(settings.old_secret_keys)))
    return 0 if found.done else 1


def _words(found: Rewrapped, *, old_keys: bool) -> list[str]:
    rewritten = "1 secret was" if found.rewrapped == 1 else f"{found.rewrapped} secrets were"
    lines = [f"{rewritten} encrypted again. New secrets are encrypted with key {found.key_id}."]
    if found.left:
        lines.append(f"{found.left} secrets changed while this command ran. Run the command again.")
    if found.unreadable:
        lines.append(
            f"No known key decrypts these {len(found.unreadable)} secrets. Add their key to CUOTA_SECRET_KEY_OLD:"
        )
        lines += [f"  {name}" for name in found.unreadable[:MOST_SHOWN]]
    for name, sessions in found.others.items():
        lines.append(f"{who(name).capitalize()} is still connected ({sessions} sessions).")
    if found.others:
        lines.append(
            "Restart each of them with the current CUOTA_SECRET_KEY and this release. Then run this command again."
        )
    if not found.done:
        lines.append("The old keys are still needed.")
    elif old_keys:
        lines.append(
            "Nothing in the database needs an old key anymore. Remove CUOTA_SECRET_KEY_OLD everywhere and restart."
            " Keep the old key as long as you keep backups made before now: restoring them needs the key."
        )
    return lines


def register(add: Add) -> None:
    """`cuota keys rewrap`."""
    add(
        "rewrap",
        keys_rewrap,
        "encrypt every stored secret with CUOTA_SECRET_KEY, so that CUOTA_SECRET_KEY_OLD can be removed",
    )
