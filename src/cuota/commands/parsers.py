"""How a command adds itself to the `cuota` program. This module loads quickly: every command needs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

EXIT_CODES = (
    "Exit codes: 0 success; 1 failure, or a check found a problem (see standard error); 2 wrong usage."
)
Command = Callable[[argparse.Namespace], int]
Add = Callable[..., argparse.ArgumentParser]


def _stated_reason(text: str) -> str:
    """Read the reason that an operator gives for the log."""
    if not (said := " ".join(text.split())):
        raise argparse.ArgumentTypeError("give a reason, in a few words; the log keeps the reason")
    return said


def add_reason(parser: argparse.ArgumentParser, text: str = "for the log") -> None:
    """Add the required option `--reason`. `text` says what the reason is about."""
    parser.add_argument(
        "--reason",
        required=True,
        type=_stated_reason,
        metavar="TEXT",
        help=f"{text}; at most 500 characters",
    )


def adder(under: Any) -> Add:
    """Return a function that adds one subcommand to `under`: `add(name, command, text, json=True)`."""

    def add(name: str, command: Command, text: str, *, json: bool = True) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = under.add_parser(
            name, help=text, description=f"{text}.", epilog=EXIT_CODES
        )
        parser.set_defaults(command=command)
        if json:
            parser.add_argument("--json", action="store_true", help="print JSON for scripts")
        return parser

    return add
