"""Commands for the whole installation: `keys rotate`, `verify` and `migrate`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from dataclasses import replace
from functools import partial
from typing import Any

import asyncpg

from cuota import config
from cuota.commands.common import acting, changes, require_database, run, show
from cuota.commands.parsers import Add
from cuota.commands.place import announce
from cuota.commands.progress import ProgressReporter, progress
from cuota.config import reading
from cuota.core.expected_failure import ExpectedFailure
from cuota.db import hosts, row_security, sealed
from cuota.db.citus import distribute
from cuota.db.lock_wait import with_locks
from cuota.db.migrate import OnProgress
from cuota.db.nodes import require_coordinator
from cuota.db.operator import operator_figures
from cuota.db.operator.operator_figures import VerifyRun
from cuota.db.payout import sending
from cuota.db.pool import UnsafeDatabase
from cuota.db.sandbox import clock
from cuota.db.verify.recalculate import VerifyReport, verify
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.keys import ALGORITHMS, Algorithm, rotate_keys
from cuota.flows.operator.log_action import OperatorNote, log_done
from cuota.flows.payout.send_payouts import NO_BANK_RAIL
from cuota.flows.secret.rewrap_secrets import who
from cuota.run import runtime

_SECURED = "rowSecurity"


class OtherKeys(ExpectedFailure):
    """Processes with another secret key are connected. The text says what to do."""


async def _rotated(context: Context, algorithm: Algorithm) -> str:
    """Add a signing key. Raises OtherKeys while a connected process may be unable to decrypt it, and so to issue tokens."""
    names = await sealed.other_sessions(context.pool, context.vault.key_id)
    others = [who(name) for name in names if name.startswith(sealed.SESSION_NAME)]
    if others:
        raise OtherKeys(
            f"No key was made, because {', '.join(others)} is connected, and this command encrypts with key {context.vault.key_id}."
            " Give all processes the same CUOTA_SECRET_KEY (docs/running.md, Replacing CUOTA_SECRET_KEY), and run the command again."
        )
    return await rotate_keys(context, algorithm=algorithm)


def keys_rotate(options: argparse.Namespace) -> int:
    """`cuota keys rotate`."""
    key_id = run(
        lambda context: _rotated(context, options.algorithm),
        changes("keys.rotate", "The keys that sign access tokens", algorithm=options.algorithm),
    )
    show(
        options,
        {"keyId": key_id, "algorithm": options.algorithm},
        [f"Key {key_id} is published within a minute and starts to sign tokens in 10 minutes."],
    )
    return 0


def verify_ledger(options: argparse.Namespace) -> int:
    """`cuota verify`: exit 1 if a row disagrees."""
    require_database()
    with progress("Verifying", "orders") as show_progress:
        report, unsent = run(lambda context: _verified(context, show_progress))
    lines = [f"{d.merchant_id} {d.order_id}  {d.row}: {d.problem}" for d in report.disagreements]
    facts = {
        "orders": report.orders,
        "transfers": report.transfers,
        "disagreements": [
            {"merchantId": str(d.merchant_id), "orderId": str(d.order_id), "row": d.row, "problem": d.problem}
            for d in report.disagreements
        ],
    }
    if unsent:
        lines.append(f"{NO_BANK_RAIL} {unsent} wait.")
    summary = f"{report.orders} orders and {report.transfers} transfers checked; {len(report.disagreements)} disagree."
    show(options, facts, [*lines, summary])
    return 1 if report.disagreements else 0


async def _verified(context: Context, told: OnProgress) -> tuple[VerifyReport, int]:
    """Return what `verify` found, and how many payouts wait because there is no bank rail."""
    unsent = await sending.count_created(context.pool) if context.rails.bank is None else 0
    report = await verify(context.pool, told)
    done = VerifyRun(utc_now(), report.orders, report.transfers, len(report.disagreements))
    # A read-only copy of the database is checked too, but the result is not stored there.
    with contextlib.suppress(asyncpg.ReadOnlySQLTransactionError):
        await operator_figures.add_run(context.pool, context.new_id(), done)
    return report, unsent


def migrate_database(options: argparse.Namespace) -> int:
    """`cuota migrate`. With --citus it also distributes the tables to their shards."""
    settings = config.load()
    with contextlib.ExitStack() as stack:
        if options.database:
            settings = replace(settings, database_owner_url=options.database)
            where = runtime.owner(settings, {})
        else:
            where = stack.enter_context(runtime.database(settings))
        report = stack.enter_context(progress("Migrating", "migrations"))
        facts = asyncio.run(_migrated(settings, where, report, citus=options.citus))
        if options.row_security:
            turned = f"{_SECURED}{options.row_security.capitalize()}"
            facts[turned] = asyncio.run(
                _secured(runtime.owner(settings, where), on=options.row_security == "on")
            )
        asyncio.run(_log(runtime.owner(settings, where), facts, options.row_security))
    lines = [
        f"{done} {name}" for done, names in facts.items() for name in names if not done.startswith(_SECURED)
    ]
    if options.row_security:
        lines.append(_secured_line(len(facts[turned]), on=options.row_security == "on"))
    show(options, facts, lines or ["The database is up to date."])
    return 0


async def _log(where: dict[str, Any], facts: dict[str, list[str]], security: str | None) -> None:
    """Write an entry into the operator's log, if anything was changed. The entry must not contain --database: it has a password."""
    if not any(facts.values()):
        return
    after = {"migrations": facts["applied"][-1]} if facts["applied"] else {}
    if facts.get("distributed"):
        after["distributed"] = f"{len(facts['distributed'])} tables"
    if any(names for done, names in facts.items() if done.startswith(_SECURED)):
        after["rowSecurity"] = str(security)
    note = OperatorNote("database.migrate", "The whole database", "", after=after)
    async with clock.connected(where, owner=True) as connection:
        await log_done(connection, acting(), note)


def _secured_line(tables: int, *, on: bool) -> str:
    if not tables:
        return f"Row-level security was {'on' if on else 'off'} already."
    if not on:
        return f"Row-level security is off for {tables} tables. No restart is needed."
    return f"Row-level security is on for {tables} tables. Restart every process now; until then, running processes see all rows."


async def _secured(where: dict[str, Any], *, on: bool) -> list[str]:
    connection = await hosts.connect(**where)
    try:
        if on and await connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
        ):
            raise UnsafeDatabase("Row-level security does not work on a Citus cluster. Nothing was changed.")
        turn = partial(row_security.turn, connection, on=on)
        return await with_locks(connection, "Row-level security", turn, runtime.lock_wait(where))
    except asyncpg.InsufficientPrivilegeError:
        raise UnsafeDatabase(
            "Only the owner of the tables can turn row-level security on or off. Give the owner's database address with --database."
        ) from None
    except asyncpg.DeadlockDetectedError:
        raise UnsafeDatabase(
            "Another session needed the same tables. Nothing was changed. Run the command again."
        ) from None
    finally:
        await connection.close()


def _database(text: str) -> str:
    try:
        return reading.database(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


async def _migrated(
    settings: config.Settings, where: dict[str, Any], report: ProgressReporter, *, citus: bool
) -> dict[str, list[str]]:
    if not citus:
        applied = await runtime.migrated(settings, where, report)
        await _announce(settings, where)
        return {"applied": applied}
    connection = await hosts.connect(**runtime.owner(settings, where))
    try:
        await require_coordinator(connection)
        applied = await runtime.migrated(settings, where, report)
        await announce(settings, connection)
        return {"applied": applied, "distributed": await distribute(connection, report)}
    finally:
        await connection.close()


async def _announce(settings: config.Settings, where: dict[str, Any]) -> None:
    reached = runtime.owner(settings, where)
    # With --database, the command acts on that database and not on the one in the settings.
    acted_on = replace(settings, database_url=reached.get("dsn", settings.database_url))
    connection = await hosts.connect(**reached)
    try:
        await announce(acted_on, connection)
    finally:
        await connection.close()


def register_keys(add: Add) -> None:
    """`cuota keys ...`."""
    parser = add(
        "rotate",
        keys_rotate,
        "add a signing key; the current key still verifies tokens until its last token has expired",
    )
    parser.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        default=ALGORITHMS[0],
        help="ES256 (P-256, the default), or RS256 (RSA) for verifiers that support only RSA",
    )


def register(add: Add) -> None:
    """Register `cuota verify` and `cuota migrate`."""
    add(
        "verify",
        verify_ledger,
        "recalculate every order from the ledger and list each row that differs",
    )
    upgrade = add("migrate", migrate_database, "apply the database migrations of this release")
    upgrade.add_argument(
        "--database",
        type=_database,
        metavar="URL",
        help="database address of the owner of the tables, instead of CUOTA_DATABASE_OWNER_URL",
    )
    upgrade.add_argument(
        "--row-security",
        choices=("on", "off"),
        help="also turn row-level security by merchant on or off; then restart the service (docs/running.md)",
    )
    upgrade.add_argument(
        "--citus",
        action="store_true",
        help="also distribute the tables over a Citus cluster (docs/scaling.md)",
    )
