"""Runs `cuota backup FILE` and `cuota restore FILE`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from cuota import config
from cuota.commands.common import acting, require_database, show
from cuota.commands.parsers import Add
from cuota.commands.place import announce, data_of
from cuota.commands.progress import ProgressReporter, progress
from cuota.db.backup.archive import Manifest
from cuota.db.sandbox import clock
from cuota.flows.operator.log_action import OperatorNote, log_done
from cuota.run import runtime
from cuota.run.backup import backup
from cuota.run.restore import restore

KEY_INSIDE = "This file contains the secret key: anyone who has the file can read every secret. Protect the file like the key."
KEY_OUTSIDE = (
    "This file does not contain the secret key (CUOTA_SECRET_KEY), and you need the key to restore the file. Keep the key"
    " in another place."
)
OLD_KEY = (
    "CUOTA_SECRET_KEY is being replaced: to restore this file, one also needs the older key (CUOTA_SECRET_KEY_OLD). After cuota keys"
    " rewrap, make another backup."
)
LIVE = (
    "Before you start the service, stop the original service for good. Otherwise both charge the same cards and send the "
    "same webhooks. Also erase again every person who was erased after this backup."
)


def _facts(manifest: Manifest) -> dict[str, object]:
    return {
        "environment": manifest.environment,
        "takenAt": manifest.taken_at,
        "release": manifest.cuota,
        "rows": manifest.counts,
        "secretKeyInside": manifest.has_key,
    }


def backup_database(options: argparse.Namespace) -> int:
    """`cuota backup`."""
    require_database()
    with progress("Backing up", "MiB") as report:
        settings = config.load()
        with runtime.database(settings) as where:
            manifest = asyncio.run(_backed_up(settings, where, options.file, report))
    size = options.file.stat().st_size
    lines = [
        f"{options.file}: {size:,} bytes, {manifest.counts['orders']} orders as of {manifest.taken_at}.",
        KEY_INSIDE if manifest.has_key else KEY_OUTSIDE,
    ]
    if manifest.old_probe:
        lines.append(OLD_KEY)
    show(options, {"file": str(options.file), "bytes": size, **_facts(manifest)}, lines)
    return 0


async def _backed_up(
    settings: config.Settings, where: dict[str, Any], file: Path, report: ProgressReporter
) -> Manifest:
    manifest = await backup(settings, where, file, report, announce)
    async with clock.connected(runtime.owner(settings, where), owner=True) as connection:
        await log_done(connection, acting(), _note(file, manifest))
    return manifest


def _note(file: Path, manifest: Manifest) -> OperatorNote:
    after = {"file": str(file.absolute()), "secretKeyInside": "yes" if manifest.has_key else "no"}
    return OperatorNote("backup", "The whole database", "", after=after)


def restore_database(options: argparse.Namespace) -> int:
    """`cuota restore`: exit 1 if a restored order disagrees with the ledger."""
    place = config.place()
    print(f"cuota: restoring into {place.environment}, {data_of(place)}.", file=sys.stderr, flush=True)
    with progress("Restoring", "MiB") as show_progress:
        manifest, report = restore(options.file, show_progress)
    lines = [
        f"Restored {report.orders} orders as of {manifest.taken_at}; {len(report.disagreements)} disagree with the ledger.",
        LIVE,
    ]
    if report.disagreements:
        lines.append("`cuota verify` lists the disagreements.")
    show(options, {**_facts(manifest), "disagreements": len(report.disagreements)}, lines)
    return 1 if report.disagreements else 0


def register(add: Add) -> None:
    """Register `cuota backup` and `cuota restore`."""
    taken = add("backup", backup_database, "write a complete backup to a new file")
    taken.add_argument(
        "file", type=Path, metavar="FILE", help="a new file; an existing one is never overwritten"
    )
    read = add(
        "restore", restore_database, "read a backup into an empty data folder or database, and verify it"
    )
    read.add_argument("file", type=Path, metavar="FILE", help="a file that `cuota backup` wrote")
