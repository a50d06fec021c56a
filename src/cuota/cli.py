"""The `cuota` command: what it takes, and what its exit codes mean."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cuota import commands
from cuota.config import SETTINGS, BadSettings
from cuota.core import money
from cuota.core.merchant import Profile
from cuota.core.refusal import Refused
from cuota.db.embedded import EmbeddedFailed
from cuota.db.pool import LOST, UnsafeDatabase
from cuota.db.vault import WrongKey
from cuota.demo import demo
from cuota.flows.manage_merchants import BadMerchant
from cuota.rails.load import NoSuchRail
from cuota.serve import CannotServe, serve
from cuota.walk import CannotWalk

EXIT_CODES = (
    "Exit codes: 0 done; 1 not done, or something disagrees (the reason is on standard error); 2 wrong use."
)
KNOWN = (
    BadSettings, BadMerchant, CannotServe, CannotWalk, EmbeddedFailed, NoSuchRail, Refused,
    UnsafeDatabase, WrongKey,
)  # fmt: skip
# A year: a secret that is to live longer was not rotated.
MOST_HOURS = 8760
Command = Callable[[argparse.Namespace], int]


def _cents(text: str) -> int:
    try:
        cents = money.cents_of(text)
    except money.BadAmount:
        raise argparse.ArgumentTypeError(f"{text} is not an amount such as 100.00") from None
    return cents


def _profile(text: str) -> Profile:
    try:
        return Profile(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be strict or lenient") from None


def _hours(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MOST_HOURS:
        raise argparse.ArgumentTypeError(f"must be a whole number of hours from 0 to {MOST_HOURS}")
    return int(text)


def _workers(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 64")
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("must be a port from 0 (any free one) to 65535")
    return int(text)


def _listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="port to listen on (default 8000)")
    parser.add_argument(
        "--workers", type=_workers, default=1, help="worker processes on the port (default 1)"
    )


def _terms(parser: argparse.ArgumentParser, *, new: bool) -> None:
    def told(text: str, default: str) -> str:
        return f"{text} ({default})" if new else text

    parser.add_argument("--minimum", type=_cents, metavar="AMOUNT", help=told("lowest order amount", "1.00"))
    parser.add_argument(
        "--maximum", type=_cents, metavar="AMOUNT", help=told("highest order amount", "2000.00")
    )
    parser.add_argument(
        "--defer-funds-capture",
        action=argparse.BooleanOptionalAction,
        help=told("capture by calls of the merchant instead of at once", "at once"),
    )
    parser.add_argument(
        "--profile", type=_profile, metavar="strict|lenient", help=told("how order bodies are read", "strict")
    )
    parser.add_argument(
        "--origin",
        action="append",
        metavar="URL",
        help="web origin whose pages may open the checkout; may be repeated",
    )


def _merchant_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    create = add("create", commands.merchant_create, "add a merchant; prints its credentials, this once")
    create.add_argument("--name", required=True, help="the name that consumers see; unique")
    _terms(create, new=True)
    add("list", commands.merchant_list, "all merchants")
    for name, command, text in (
        ("show", commands.merchant_show, "one merchant's terms and client ids"),
        ("update", commands.merchant_update, "change terms, for orders created from now on"),
        ("rotate-secret", commands.merchant_rotate, "a new client secret; the old one lives on for a while"),
        ("revoke", commands.merchant_revoke, "revoke a merchant's credentials; its tokens stop working"),
        ("reinstate", commands.merchant_reinstate, "give a revoked merchant a new credential"),
    ):
        parser = add(name, command, text)
        parser.add_argument("merchant", metavar="NAME_OR_ID")
        if name == "update":
            parser.add_argument("--name", help="a new name")
            _terms(parser, new=False)
        if name == "rotate-secret":
            parser.add_argument(
                "--old-lives-hours", type=_hours, default=24, metavar="N", help="hours (default 24)"
            )


def _adder(under: Any) -> Callable[..., argparse.ArgumentParser]:
    def add(name: str, command: Command, text: str, *, json: bool = True) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = under.add_parser(
            name, help=text, description=f"{text}.", epilog=EXIT_CODES
        )
        parser.set_defaults(command=command)
        if json:
            parser.add_argument("--json", action="store_true", help="print JSON for scripts")
        return parser

    return add


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {setting.name:26} {setting.meaning}" for setting in SETTINGS)
    whole = argparse.ArgumentParser(
        prog="cuota",
        description="Cuota: an installment-payment provider. `cuota demo` shows all of it.",
        epilog=f"{EXIT_CODES}\n\nSettings, from the environment:\n{listed}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    groups = whole.add_subparsers(metavar="COMMAND", required=True)

    def group(name: str, text: str) -> Callable[..., argparse.ArgumentParser]:
        return _adder(
            groups.add_parser(name, help=text, description=f"{text}.").add_subparsers(required=True)
        )

    add = _adder(groups)
    _listen(
        add("serve", _serve, "API, token issuer, pages and background work of one environment", json=False)
    )
    shown = add("demo", _demo, "serve, a demo merchant, and its shop on a second origin", json=False)
    _listen(shown)
    shown.add_argument("--shop-port", type=_port, default=8001, help="port of the shop (default 8001)")
    _merchant_commands(group("merchant", "create and manage merchants"))
    complete = group("sandbox", "tools for the sandbox")(
        "complete",
        commands.sandbox_complete,
        "walk a hosted checkout to its end, as a browser without script would",
    )
    complete.add_argument("redirect_url", metavar="REDIRECT_URL")
    complete.add_argument("--outcome", choices=["approved", "declined", "abandoned"], required=True)
    heard = add("listen", commands.listen_to, "print a merchant's events as they come")
    heard.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    heard.add_argument(
        "--forward", metavar="URL", help="send each on to this address too, with its signatures"
    )
    heard.add_argument("--from-start", action="store_true", help="begin with the first event there is")
    again = group("webhook", "webhooks that were sent")(
        "replay", commands.webhook_replay, "send events again: one, a range, or all of an endpoint"
    )
    again.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    again.add_argument("--event", metavar="ID", help="this event")
    again.add_argument("--endpoint", metavar="ID", help="to this endpoint only")
    again.add_argument("--after", metavar="ID", help="events after this one")
    again.add_argument("--until", metavar="ID", help="events up to and with this one")
    group("keys", "the token issuer's signing keys")(
        "rotate",
        commands.keys_rotate,
        "add a signing key; the present one verifies until its last token has ended",
    )
    add(
        "verify",
        commands.verify_ledger,
        "rederive every order from the ledger and name each row that disagrees",
    )
    add("migrate", commands.migrate_database, "bring the database up to this release")
    return whole


def _serve(options: argparse.Namespace) -> int:
    return serve(options.host, options.port, options.workers)


def _demo(options: argparse.Namespace) -> int:
    return demo(options.host, options.port, options.shop_port, options.workers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except KNOWN as problem:
        print(f"cuota: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Python flushes once more at its end; let that go nowhere instead of failing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LOST as problem:
        print(f"cuota: The database went away: {problem}. Try again.", file=sys.stderr)
        return 1
    return code
