"""`cuota sandbox`: tools for the sandbox."""

from __future__ import annotations

import argparse

import httpx

from cuota.commands.common import Add, show
from cuota.walk import CannotWalk, walk


def sandbox_complete(options: argparse.Namespace) -> int:
    """`cuota sandbox complete`."""
    try:
        address = walk(options.redirect_url, options.outcome)
    except httpx.HTTPError as problem:
        raise CannotWalk(f"The checkout cannot be reached: {problem}.") from None
    except (httpx.InvalidURL, ValueError) as problem:
        raise CannotWalk(f"The redirectUrl is not an address: {problem}.") from None
    show(options, {"outcome": options.outcome, "url": address}, [address])
    return 0


def register(add: Add) -> None:
    """`cuota sandbox ...`."""
    complete = add(
        "complete",
        sandbox_complete,
        "walk a hosted checkout to its end, as a browser without script would",
    )
    complete.add_argument("redirect_url", metavar="REDIRECT_URL")
    complete.add_argument("--outcome", choices=["approved", "declined", "abandoned"], required=True)
