"""The `cuota` command: its subcommands, their options, and the exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from cuota.commands import (
    approvals,
    backup,
    bank,
    consumers,
    desk,
    disputes,
    events,
    keys,
    merchant_bank,
    merchant_secrets,
    merchant_suspend,
    merchant_terms,
    merchants,
    money,
    operate,
    payout_export,
    payouts,
    plans,
    rails,
    reviews,
    risk,
    sandbox,
    time,
)
from cuota.commands.checkout_walker import CannotWalk
from cuota.commands.common import EXIT_CODES, Add, adder
from cuota.commands.demo import demo
from cuota.commands.history import command as history
from cuota.commands.place import NoService
from cuota.config import BadSettings
from cuota.config.table import SETTINGS
from cuota.core.instant import BadInstant
from cuota.core.plan.hardship import CannotChange
from cuota.core.refusal import Refused
from cuota.db.backup.archive import BadArchive
from cuota.db.backup.programs import ProgramFailed
from cuota.db.embedded.server import EmbeddedFailed
from cuota.db.pool import LOST, UnsafeDatabase
from cuota.db.vault import WrongKey
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.order.find_order import NothingToExplain
from cuota.flows.risk.answer_review import NoReview, ReviewEnded
from cuota.flows.risk.block_consumer import CannotBlock
from cuota.flows.risk.keep_policy import WrongPolicy
from cuota.flows.risk.try_approvals import NotProved
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.rails.load import NoSuchRail
from cuota.run.backup import CannotBackUp
from cuota.run.restore import CannotRestore
from cuota.run.serve import CannotServe, serve
from cuota.run.worker import work_alone

EXPECTED_FAILURES = (
    BadInstant, BadSettings, BadMerchant, CannotBlock, CannotChange, CannotMoveTime, CannotServe, CannotWalk, EmbeddedFailed, NoService, NoSuchRail,
    NothingToExplain, NoReview, NotProved, Refused, ReviewEnded,
    UnsafeDatabase, WrongKey, WrongPolicy, BadArchive, CannotBackUp, CannotRestore, ProgramFailed,
)  # fmt: skip


def _workers(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 64")
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("must be a port number from 1 to 65535, or 0 for any free port")
    return int(text)


def _listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="port to listen on (default 8000)")
    parser.add_argument("--workers", type=_workers, default=1, help="number of worker processes (default 1)")


def _demo_options(parser: argparse.ArgumentParser) -> None:
    _listen(parser)
    parser.add_argument("--shop-port", type=_port, default=8001, help="port of the shop (default 8001)")
    parser.add_argument(
        "--history", action="store_true", help="also make six weeks of orders, as `cuota demo history` does"
    )
    history.register(adder(parser.add_subparsers(metavar="COMMAND")))


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {setting.name:26} {setting.meaning}" for setting in SETTINGS)
    whole = argparse.ArgumentParser(
        prog="cuota",
        description="Cuota: an installment-payment provider. To see it all at work, run `cuota demo`.",
        epilog=f"{EXIT_CODES}\n\nSettings (environment variables):\n{listed}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    groups = whole.add_subparsers(metavar="COMMAND", required=True)

    def group(name: str, text: str) -> Add:
        return adder(groups.add_parser(name, help=text, description=f"{text}.").add_subparsers(required=True))

    add = adder(groups)
    _listen(
        add("serve", _serve, "run the API, the token issuer, the pages and the background jobs", json=False)
    )
    add("work", _work, "run only the background jobs; any number of workers may run", json=False)
    shown = add(
        "demo",
        _demo,
        "run the service with a demo merchant, and the merchant's shop on a second port",
        json=False,
    )
    _demo_options(shown)
    merchant = group("merchant", "create and manage merchants")
    for each in (merchants, merchant_bank, merchant_secrets, merchant_suspend, merchant_terms):
        each.register(merchant)
    money.register_merchant(merchant)
    approvals.register_merchant(merchant)
    approvals.register(group("approvals", "judge the data that merchants send about their customers"))
    consumers.register(group("consumer", "export or erase a person's data, or block a person"))
    sandbox.register(group("sandbox", "tools for the sandbox"))
    events.register_listen(add)
    events.register_webhook(group("webhook", "send webhooks again"))
    keyring = group("keys", "the token issuer's signing keys, and the key that encrypts secrets")
    operate.register_keys(keyring)
    keys.register(keyring)
    for each in (operate, money, rails, payouts, payout_export, backup):
        each.register(add)
    bank.register(group("bank", "files for a bank, and the reports that it sends back"))
    desk.register(group("desk", "the merchant's dashboard: sign-in links and invitations"))
    disputes.register(group("dispute", "disputes about orders: open, decide, list, and act for one side"))
    plans.register(group("plan", "change an agreed plan"))
    risk.register_explain(group("explain", "explain what happened and why, with the numbers"))
    risk.register_policy(group("policy", "risk policies"))
    reviews.register(group("review", "orders that wait for a person: list, approve, decline"))
    risk.register(add)
    time.register(add)
    return whole


def _serve(options: argparse.Namespace) -> int:
    return serve(options.host, options.port, options.workers)


def _work(_options: argparse.Namespace) -> int:
    return work_alone()


def _demo(options: argparse.Namespace) -> int:
    return demo(options.host, options.port, options.shop_port, options.workers, history=options.history)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    An expected failure is one line on standard error and exit code 1; any other exception is a bug and is not caught here.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except EXPECTED_FAILURES as problem:
        print(f"cuota: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe. Python flushes standard output again when it exits; send that to the null device, so
        # that it does not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LOST as problem:
        print(f"cuota: The connection to the database was lost: {problem}. Try again.", file=sys.stderr)
        return 1
    return code
