"""`cuota consumer`: export or erase what is stored about a person, and block a consumer (blocks.py)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from cuota.commands import blocks
from cuota.commands.common import acting, require_database, run, show
from cuota.commands.parsers import Add
from cuota.core.consumer import is_us_number, typed_number
from cuota.core.privacy.erasure import STAYS
from cuota.flows.context import Context
from cuota.flows.operator.log_action import OperatorNote, log_refusal
from cuota.flows.privacy.erase_consumer import Erasure, erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer

NOT_CONFIRMED = "Nothing was erased. First see what would be erased with --dry-run, then run the command again with --yes."


def _phone(text: str) -> str:
    number = typed_number(text)
    if not is_us_number(number):
        raise argparse.ArgumentTypeError("must be a US mobile number of ten digits, such as 2125550142")
    return number


def consumer_export(options: argparse.Namespace) -> int:
    """`cuota consumer export`."""
    require_database()
    if options.out and options.out.exists():
        print(
            f"cuota: {options.out} exists already. Nothing was written; choose another file.", file=sys.stderr
        )
        return 1
    found = run(
        lambda context: export_consumer(context, options.phone), _about("consumer.export", options.phone)
    )
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if options.out is None:
        sys.stdout.write(text)
        return 0
    try:
        # Only the user who runs this can read the file (mode 600). O_EXCL never overwrites an existing file.
        with os.fdopen(os.open(options.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as problem:
        print(f"cuota: Cannot write {options.out}: {problem}.", file=sys.stderr)
        return 1
    orders = _counted(len(found["orders"]), "orders")
    print(f"Written to {options.out}: {orders}. The file contains personal data: send it only in a safe way.")
    return 0


def consumer_erase(options: argparse.Namespace) -> int:
    """`cuota consumer erase`: exit 1 if the erasure was refused or not confirmed."""
    require_database()
    confirmed = options.dry_run or options.yes or _confirmed(options.phone)
    if not confirmed:
        print(f"cuota: {NOT_CONFIRMED}", file=sys.stderr)
        return 1
    note = None if options.dry_run else _about("consumer.erase", options.phone)

    async def flow(context: Context) -> Erasure:
        done = await erase_consumer(
            context, options.phone, dry_run=options.dry_run, refunds_settled=options.refunds_settled
        )
        if note is not None and done.reasons:
            await log_refusal(context, acting(), note(context), " ".join(done.reasons))
        return done

    done = run(flow, note)
    show(options, _facts(done, dry_run=options.dry_run), _lines(done, dry_run=options.dry_run))
    return 1 if done.reasons else 0


def _about(action: str, phone: str) -> Callable[[Context], OperatorNote]:
    """Return the entry for the operator's log. The log names the consumer by id, never by phone number."""

    def note(context: Context) -> OperatorNote:
        consumer_id = context.vault.consumer_id(phone)
        return OperatorNote(action, f"Consumer {consumer_id}", "", consumer_id)

    return note


def _counted(count: int, name: str) -> str:
    return f"1 {name.removesuffix('s')}" if count == 1 else f"{count} {name}"


def _confirmed(phone: str) -> bool:
    """Ask the person at the terminal to type the number again. Return False if it differs, or if there is no terminal."""
    if not sys.stdin.isatty():
        return False
    print(
        "This erases the person's data permanently. To continue, type the phone number again: ",
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
        "cardProcessorsToDelete": done.waiting,
        "erasedBefore": done.erased_before.isoformat() if done.erased_before else None,
    }


def _lines(done: Erasure, *, dry_run: bool) -> list[str]:
    lines = []
    if done.erased_before:
        lines.append(f"This person's data was erased before, most recently on {done.erased_before:%Y-%m-%d}.")
    if done.reasons:
        return [*lines, "Not erased, because:", *(f"  {reason}" for reason in done.reasons)]
    if not any(done.rows.values()):
        return [*lines, "No personal data is stored for this number."]
    lines.append("Dry run: nothing was changed. The erasure would erase:" if dry_run else "Erased:")
    lines += [f"  {_counted(count, name)}" for name, count in done.rows.items() if count]
    lines.append("Kept:")
    lines += [f"  {what}: {why}." for what, why in STAYS]
    if done.waiting:
        lines.append(
            f"These card processors did not answer yet: {', '.join(done.waiting)}. The service tries again until they have deleted the person."
        )
    if done.forks:
        lines.append(f"These forks of the sandbox still contain the data: {', '.join(done.forks)}.")
    return lines


def register(add: Add) -> None:
    """`cuota consumer ...`."""
    export = add(
        "export", consumer_export, "print all data that is stored about a person, as JSON", json=False
    )
    export.add_argument(
        "--out", type=Path, metavar="FILE", help="write to a new file (default: standard output)"
    )
    erase = add(
        "erase",
        consumer_erase,
        "erase a person's data if the person owes nothing; say which data is kept and why",
    )
    erase.add_argument("--dry-run", action="store_true", help="show what would be erased, and change nothing")
    erase.add_argument("--yes", action="store_true", help="erase without asking for confirmation")
    erase.add_argument(
        "--refunds-settled",
        action="store_true",
        help="confirm that you paid the person, in another way, every refund that a card refused",
    )
    blocks.register(add, _phone)
    for parser in (export, erase):
        parser.add_argument(
            "--phone", type=_phone, required=True, metavar="NUMBER", help="the person's phone number"
        )
