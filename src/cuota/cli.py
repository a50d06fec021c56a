"""The `cuota` command: its subcommands, and the exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cuota.commands.parsers import EXIT_CODES, Add, adder
from cuota.config.table import SETTINGS
from cuota.core.expected_failure import ExpectedFailure


class Groups:
    """The program's commands and groups of commands, while its parser is built."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._groups: Any = parser.add_subparsers(metavar="COMMAND", required=True)
        self.add = adder(self._groups)

    def group(self, name: str, text: str) -> Add:
        """Add a group of commands, and return the function that adds a command to it."""
        parser = self._groups.add_parser(name, help=text, description=f"{text}.")
        return adder(parser.add_subparsers(required=True))


def _service(groups: Groups) -> None:
    from cuota.commands import service

    service.register(groups.add)


def _work(groups: Groups) -> None:
    from cuota.commands import work

    work.register(groups.add)


def _demo(groups: Groups) -> None:
    from cuota.commands import demo

    demo.register(groups.add)


def _merchant(groups: Groups) -> None:
    from cuota.commands import (
        approvals,
        merchant_bank,
        merchant_secrets,
        merchant_suspend,
        merchant_terms,
        merchants,
        money,
    )

    merchant = groups.group("merchant", "create and manage merchants")
    for each in (merchants, merchant_bank, merchant_secrets, merchant_suspend, merchant_terms):
        each.register(merchant)
    money.register_merchant(merchant)
    approvals.register_merchant(merchant)


def _approvals(groups: Groups) -> None:
    from cuota.commands import approvals

    approvals.register(groups.group("approvals", "judge the data that merchants send about their customers"))


def _consumer(groups: Groups) -> None:
    from cuota.commands import consumers

    consumers.register(groups.group("consumer", "export or erase a person's data, or block a person"))


def _sandbox(groups: Groups) -> None:
    from cuota.commands import sandbox

    sandbox.register(groups.group("sandbox", "tools for the sandbox"))


def _events(groups: Groups) -> None:
    from cuota.commands import events

    events.register_listen(groups.add)
    events.register_webhook(groups.group("webhook", "send webhooks again"))


def _keys(groups: Groups) -> None:
    from cuota.commands import keys, operate

    keyring = groups.group("keys", "the token issuer's signing keys, and the key that encrypts secrets")
    operate.register_keys(keyring)
    keys.register(keyring)


def _operate(groups: Groups) -> None:
    from cuota.commands import operate

    operate.register(groups.add)


def _books(groups: Groups) -> None:
    from cuota.commands import money

    money.register(groups.add)


def _rails(groups: Groups) -> None:
    from cuota.commands import rails

    rails.register(groups.add)


def _payouts(groups: Groups) -> None:
    from cuota.commands import payouts

    payouts.register(groups.add)


def _payout_export(groups: Groups) -> None:
    from cuota.commands import payout_export

    payout_export.register(groups.add)


def _backup(groups: Groups) -> None:
    from cuota.commands import backup

    backup.register(groups.add)


def _bank(groups: Groups) -> None:
    from cuota.commands import bank

    bank.register(groups.group("bank", "files for a bank, and the reports that it sends back"))


def _desk(groups: Groups) -> None:
    from cuota.commands import desk

    desk.register(groups.group("desk", "the merchant's dashboard: sign-in links and invitations"))


def _dispute(groups: Groups) -> None:
    from cuota.commands import disputes

    disputes.register(
        groups.group("dispute", "disputes about orders: open, decide, list, and act for one side")
    )


def _plan(groups: Groups) -> None:
    from cuota.commands import plans

    plans.register(groups.group("plan", "change an agreed plan"))


def _risk(groups: Groups) -> None:
    from cuota.commands import risk

    risk.register_explain(groups.group("explain", "explain what happened and why, with the numbers"))
    risk.register_policy(groups.group("policy", "risk policies"))
    risk.register(groups.add)


def _review(groups: Groups) -> None:
    from cuota.commands import reviews

    reviews.register(groups.group("review", "orders that wait for a person: list, approve, decline"))


def _time(groups: Groups) -> None:
    from cuota.commands import time

    time.register(groups.add)


# Who adds each command. A run of one command loads the code of that command only.
COMMANDS: dict[str, Callable[[Groups], None]] = {
    "serve": _service, "work": _work, "demo": _demo, "merchant": _merchant, "approvals": _approvals,
    "consumer": _consumer, "sandbox": _sandbox, "listen": _events, "webhook": _events, "keys": _keys,
    "verify": _operate, "card-refunds": _operate, "migrate": _operate, "books": _books, "rails": _rails,
    "payouts": _payouts, "payout-export": _payout_export, "backup": _backup, "restore": _backup, "bank": _bank,
    "desk": _desk, "dispute": _dispute, "plan": _plan, "explain": _risk, "policy": _risk, "decide": _risk,
    "review": _review, "time": _time,
}  # fmt: skip


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of the program: with all commands, or with those that are added together with `command`."""
    listed = "\n".join(f"  {setting.name:26} {setting.meaning}" for setting in SETTINGS)
    whole = argparse.ArgumentParser(
        prog="cuota",
        description="Cuota: an installment-payment provider. To see it all at work, run `cuota demo`.",
        epilog=f"{EXIT_CODES}\n\nSettings (environment variables):\n{listed}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    groups = Groups(whole)
    needed = [COMMANDS[command]] if command in COMMANDS else list(dict.fromkeys(COMMANDS.values()))
    for add in needed:
        add(groups)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    An expected failure is one line on standard error and exit code 1; any other exception is a bug and is not caught here.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = make_parser(given[0] if given else "").parse_args(given)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except ExpectedFailure as problem:
        print(f"cuota: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe. Python flushes standard output again when it exits; send that to the null device, so
        # that it does not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as problem:
        if not _lost(problem):
            raise
        print(f"cuota: The connection to the database was lost: {problem}. Try again.", file=sys.stderr)
        return 1
    return code


def _lost(problem: Exception) -> bool:
    """Return whether the connection to the database was lost."""
    from cuota.db.pool import LOST

    return isinstance(problem, LOST)
