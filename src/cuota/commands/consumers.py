"""`cuota consumer`: export or erase what is stored about a person."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from cuota.commands.common import Add, require_database, run, show
from cuota.core.consumer import is_us_number, typed_number
from cuota.core.privacy.erasure import STAYS
from cuota.flows.privacy.erase_consumer import Erasure, erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer

NOT_CONFIRMED = "Nothing was erased. Look with --dry-run first; then run it again with --yes."


def _phone(text: str) -> str:
    number = typed_number(text)
    if not is_us_number(number):
        raise argparse.ArgumentTypeError("must be a US mobile number of ten digits, such as 2125550142")
    return number


def consumer_export(options: argparse.Namespace) -> int:
    """`cuota consumer export`."""
    require_database()
    if options.out and options.out.exists():
        print(f"cuota: {options.out} is there already; nothing was written.", file=sys.stderr)
        return 1
    found = run(lambda context: export_consumer(context, options.phone))
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if options.out is None:
        sys.stdout.write(text)
        return 0
    try:
        # For its owner's eyes only, and never over a file that is there.
        with os.fdopen(os.open(options.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as problem:
        print(f"cuota: {options.out} cannot be written: {problem}.", file=sys.stderr)
        return 1
    orders = _counted(len(found["orders"]), "orders")
    print(f"Written to {options.out}: {orders}. It is personal data: pass it on safely.")
    return 0


def consumer_erase(options: argparse.Namespace) -> int:
    """`cuota consumer erase`: exit 1 where nothing was erased."""
    require_database()
    sure = options.dry_run or options.yes or _asked(options.phone)
    if not sure:
        print(f"cuota: {NOT_CONFIRMED}", file=sys.stderr)
        return 1
    done = run(
        lambda context: erase_consumer(
            context, options.phone, dry_run=options.dry_run, refunds_settled=options.refunds_settled
        )
    )
    show(options, _facts(done, dry_run=options.dry_run), _lines(done, dry_run=options.dry_run))
    return 1 if done.reasons else 0


def _counted(count: int, name: str) -> str:
    return f"1 {name.removesuffix('s')}" if count == 1 else f"{count} {name}"


def _asked(phone: str) -> bool:
    """Whether a person at a terminal types the number once more."""
    if not sys.stdin.isatty():
        return False
    print(
        "This erases the person's data for good. To go on, type the phone number once more: ",
        end="",
        flush=True,
    )
    return typed_number(sys.stdin.readline()) == phone


def _facts(done: Erasure, *, dry_run: bool) -> dict[str, object]:
    return {
        "consumerId": str(done.consumer_id),
        "dryRun": dry_run,
        "erased": done.done,
        "refusedBecause": done.reasons,
        "rows": done.rows,
        "kept": [{"what": what, "why": why} for what, why in STAYS],
        "sandboxForks": done.forks,
        "erasedBefore": done.erased_before.isoformat() if done.erased_before else None,
    }


def _lines(done: Erasure, *, dry_run: bool) -> list[str]:
    lines = []
    if done.erased_before:
        lines.append(f"Erased before, last on {done.erased_before:%Y-%m-%d}.")
    if done.reasons:
        return [*lines, "Not erased, because:", *(f"  {reason}" for reason in done.reasons)]
    if not any(done.rows.values()):
        return [*lines, "Nothing personal is stored about this number."]
    lines.append("A dry run: nothing was changed. It would erase:" if dry_run else "Erased:")
    lines += [f"  {_counted(count, name)}" for name, count in done.rows.items() if count]
    lines.append("Kept:")
    lines += [f"  {what}: {why}." for what, why in STAYS]
    if done.forks:
        lines.append(f"Copies of the sandbox still hold it: {', '.join(done.forks)}.")
    return lines


def register(add: Add) -> None:
    """`cuota consumer ...`."""
    export = add(
        "export", consumer_export, "print everything that is stored about a person, as JSON", json=False
    )
    export.add_argument(
        "--out", type=Path, metavar="FILE", help="write to a new file (default: standard output)"
    )
    erase = add("erase", consumer_erase, "erase a person's data if nothing is owed; say what stays and why")
    erase.add_argument("--dry-run", action="store_true", help="say what would be erased, and change nothing")
    erase.add_argument("--yes", action="store_true", help="do it without asking")
    erase.add_argument(
        "--refunds-settled",
        action="store_true",
        help="confirm that refunds that cards refused were paid to the person in another way",
    )
    for parser in (export, erase):
        parser.add_argument(
            "--phone", type=_phone, required=True, metavar="NUMBER", help="the person's number"
        )
