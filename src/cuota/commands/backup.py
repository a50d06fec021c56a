"""`cuota backup FILE` and `cuota restore FILE`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cuota import config
from cuota.commands.common import Add, require_database, show
from cuota.commands.place import announce, data_of
from cuota.commands.progress import progress
from cuota.db.backup.archive import Manifest
from cuota.run.backup import take
from cuota.run.restore import restore

KEY_INSIDE = (
    "The secret key is inside: whoever has this file can read every secret. Keep it as you keep the key."
)
KEY_OUTSIDE = (
    "The secret key (CUOTA_SECRET_KEY) is not inside. Without it this file cannot be restored: keep it apart."
)
LIVE = (
    "Before you start the service: the original must not run any more, or both charge the same cards and send the "
    "same webhooks. People who were erased after this backup have to be erased again."
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
    with progress("Backing up", "MiB") as told:
        manifest = take(config.load(), options.file, told, announce)
    size = options.file.stat().st_size
    lines = [
        f"{options.file}: {size:,} bytes, {manifest.counts['orders']} orders as of {manifest.taken_at}.",
        KEY_INSIDE if manifest.has_key else KEY_OUTSIDE,
    ]
    show(options, {"file": str(options.file), "bytes": size, **_facts(manifest)}, lines)
    return 0


def restore_database(options: argparse.Namespace) -> int:
    """`cuota restore`: exit 1 if what was restored does not agree with its ledger."""
    place = config.place()
    print(f"cuota: restoring into {place.environment}, {data_of(place)}.", file=sys.stderr, flush=True)
    with progress("Restoring", "MiB") as told:
        manifest, report = restore(options.file, told)
    lines = [
        f"Restored {report.orders} orders as of {manifest.taken_at}; {len(report.disagreements)} disagree with the ledger.",
        LIVE,
    ]
    if report.disagreements:
        lines.append("`cuota verify` names them.")
    show(options, {**_facts(manifest), "disagreements": len(report.disagreements)}, lines)
    return 1 if report.disagreements else 0


def register(add: Add) -> None:
    """`cuota backup` and `cuota restore`."""
    taken = add("backup", backup_database, "write a complete backup to a new file")
    taken.add_argument(
        "file", type=Path, metavar="FILE", help="a new file; an existing one is never overwritten"
    )
    read = add(
        "restore", restore_database, "read a backup into an empty data folder or database, and verify it"
    )
    read.add_argument("file", type=Path, metavar="FILE", help="what `cuota backup` wrote")
