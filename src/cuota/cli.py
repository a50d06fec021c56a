"""The `cuota` command: its subcommands, and the exit codes."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cuota.commands.parsers import EXIT_CODES, Add, adder
from cuota.config.table import SETTINGS
from cuota.core.expected_failure import ExpectedFailure, WrongUsage


class Groups:
    """The program's commands and groups of commands, while its parser is built."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._groups: Any = parser.add_subparsers(metavar="COMMAND", required=True)
        self.add = adder(self._groups)

    def group(self, name: str, text: str) -> Add:
        """Add a group of commands, and return the function that adds a command to it."""
        parser = self._groups.add_parser(name, help=text, description=f"{text}.")
        return adder(parser.add_subparsers(required=True))


Adds = Callable[[Groups], None]


def _load(module: str) -> Any:
    return importlib.import_module(f"cuota.commands.{module}")


@cache
def _module(module: str) -> Adds:
    """Return what adds the commands of a module. Two commands of one module get the same function."""
    return lambda groups: _load(module).register(groups.add)


def _group(module: str, name: str, text: str) -> Adds:
    """Return what adds a group of commands, all of which are in one module."""
    return lambda groups: _load(module).register(groups.group(name, text))


def _merchant(groups: Groups) -> None:
    merchant = groups.group("merchant", "create and manage merchants")
    for each in ("merchants", "merchant_bank", "merchant_secrets", "merchant_suspend", "merchant_terms"):
        _load(each).register(merchant)
    _load("money").register_merchant(merchant)
    _load("approvals").register_merchant(merchant)


def _events(groups: Groups) -> None:
    events = _load("events")
    events.register_listen(groups.add)
    events.register_webhook(groups.group("webhook", "send webhooks again"))


def _keys(groups: Groups) -> None:
    keyring = groups.group("keys", "the token issuer's signing keys, and the key that encrypts secrets")
    _load("operate").register_keys(keyring)
    _load("keys").register(keyring)


def _risk(groups: Groups) -> None:
    risk = _load("risk")
    risk.register_explain(groups.group("explain", "explain what happened and why, with the numbers"))
    risk.register_policy(groups.group("policy", "risk policies"))
    risk.register(groups.add)


# What adds each command to the parser. A run of one command loads the code of that command only.
COMMANDS: dict[str, Adds] = {
    "serve": _module("service"),
    "work": _module("work"),
    "demo": _module("demo"),
    "merchant": _merchant,
    "approvals": _group("approvals", "approvals", "judge the data that merchants send about their customers"),
    "consumer": _group("consumers", "consumer", "export or erase a person's data, or block a person"),
    "sandbox": _group("sandbox", "sandbox", "tools for the sandbox"),
    "listen": _events,
    "webhook": _events,
    "keys": _keys,
    "verify": _module("operate"),
    "card-refunds": _module("card_refunds"),
    "migrate": _module("operate"),
    "books": _module("money"),
    "rails": _module("rails"),
    "payouts": _module("payouts"),
    "payout-export": _module("payout_export"),
    "backup": _module("backup"),
    "restore": _module("backup"),
    "bank": _group("bank", "bank", "files for a bank, and the reports that it sends back"),
    "desk": _group("desk", "desk", "the merchant's dashboard: sign-in links and invitations"),
    "dispute": _group(
        "disputes", "dispute", "disputes about orders: open, decide, list, and act for one side"
    ),
    "plan": _group("plans", "plan", "change an agreed plan"),
    "explain": _risk,
    "policy": _risk,
    "decide": _risk,
    "review": _group("reviews", "review", "orders that wait for a person: list, approve, decline"),
    "time": _module("time"),
}


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
    for adds in [COMMANDS[command]] if command in COMMANDS else dict.fromkeys(COMMANDS.values()):
        adds(groups)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    An expected failure is one line on standard error and exit code 1, or 2 if the options are wrong; any other exception is a bug
    and is not caught here.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    # Loading code leaves almost no garbage. Searching for garbage would take a sixth of the time.
    gc.disable()
    try:
        options = make_parser(given[0] if given else "").parse_args(given)
    except KeyboardInterrupt:
        return 130
    finally:
        gc.enable()
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except ExpectedFailure as problem:
        print(f"cuota: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, WrongUsage) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe. Python flushes standard output again when it exits; send that to the null device, so
        # that it does not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as problem:
        said = _about_database(problem)
        if said is None:
            raise
        print(f"cuota: {said}", file=sys.stderr)
        return 1
    return code


def _about_database(problem: Exception) -> str | None:
    """Return what to say about an exception of the database's driver; None for a bug. Only now, the code of the database is needed."""
    pool = importlib.import_module("cuota.db.pool")
    if isinstance(problem, pool.FULL):
        return (
            f"The database has no free session: {problem}. Use fewer --workers or a smaller CUOTA_POOL_SIZE, or increase its "
            "max_connections."
        )
    if isinstance(problem, pool.LOST):
        return f"The connection to the database was lost: {problem}. Try again."
    return None
