"""What an operator does to the whole installation: keys, verify, migrate."""

from __future__ import annotations

import argparse
import asyncio

from cuota import config, runtime
from cuota.commands.common import Add, require_database, run, show
from cuota.core import money
from cuota.db.charges import failed_refunds
from cuota.db.verify import verify
from cuota.flows.keys import rotate_keys

MOST_SHOWN = 1000


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


def card_refunds(options: argparse.Namespace) -> int:
    """`cuota card-refunds`: exit 1 if any failed, so that a nightly job tells."""
    require_database()
    found = run(lambda context: failed_refunds(context.pool, MOST_SHOWN))
    facts = [
        {
            "merchantId": str(each.merchant_id),
            "orderId": str(each.order_id),
            "cardRefundId": str(each.card_refund_id),
            "amount": money.text_of(each.amount),
            "card": f"{each.card_brand} {each.card_last4}",
            "reason": each.reason,
            "failedAt": each.failed_at.isoformat(),
        }
        for each in found
    ]
    lines = [" ".join(str(value) for value in fact.values()) for fact in facts]
    show(options, facts, lines or ["No card has refused money back."])
    return 1 if found else 0


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
    add(
        "card-refunds",
        card_refunds,
        "money back that a card refused: owed to consumers, to be paid another way",
    )
    add("migrate", migrate_database, "bring the database up to this release")
