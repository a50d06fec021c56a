"""What an operator does to the whole installation: keys, verify, migrate."""

from __future__ import annotations

import argparse
import asyncio

from cuota import config, runtime
from cuota.commands.common import Add, require_database, run, show
from cuota.db.verify import verify
from cuota.flows.keys import rotate_keys


def keys_rotate(options: argparse.Namespace) -> int:
    """`cuota keys rotate`."""
    key_id = run(rotate_keys)
    show(options, {"keyId": key_id}, [f"{key_id} is published now and signs in 10 minutes."])
    return 0


def verify_ledger(options: argparse.Namespace) -> int:
    """`cuota verify`: exit 1 if a row disagrees."""
    require_database()
    report = run(lambda context: verify(context.pool))
    lines = [f"{d.merchant_id} {d.order_id}  {d.row}: {d.problem}" for d in report.disagreements]
    facts = {
        "orders": report.orders,
        "transfers": report.transfers,
        "disagreements": [
            {"merchantId": str(d.merchant_id), "orderId": str(d.order_id), "row": d.row, "problem": d.problem}
            for d in report.disagreements
        ],
    }
    summary = (
        f"{report.orders} orders and {report.transfers} transfers; {len(report.disagreements)} disagree."
    )
    show(options, facts, [*lines, summary])
    return 1 if report.disagreements else 0


def migrate_database(options: argparse.Namespace) -> int:
    """`cuota migrate`."""
    settings = config.load()
    with runtime.database(settings) as where:
        applied = asyncio.run(runtime.migrated(settings, where))
    show(
        options,
        {"applied": applied},
        [f"applied {name}" for name in applied] or ["The database is up to date."],
    )
    return 0


def register_keys(add: Add) -> None:
    """`cuota keys ...`."""
    add(
        "rotate",
        keys_rotate,
        "add a signing key; the present one verifies until its last token has ended",
    )


def register(add: Add) -> None:
    """`cuota verify` and `cuota migrate`."""
    add(
        "verify",
        verify_ledger,
        "rederive every order from the ledger and name each row that disagrees",
    )
    add("migrate", migrate_database, "bring the database up to this release")
