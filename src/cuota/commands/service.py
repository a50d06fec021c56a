"""`cuota serve`: runs the service."""

from __future__ import annotations

import argparse

from cuota.commands.parsers import Add
from cuota.run.serve import serve


def add_listener(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that serves requests."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=port, default=8000, help="port to listen on (default 8000)")
    parser.add_argument("--workers", type=_workers, default=1, help="number of worker processes (default 1)")


def port(text: str) -> int:
    """Read the number of a port, or 0 for any free port."""
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("must be a port number from 1 to 65535, or 0 for any free port")
    return int(text)


def _workers(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 64")
    return int(text)


def register(add: Add) -> None:
    """Add the command."""
    text = "run the API, the token issuer, the pages and the background jobs"
    add_listener(add("serve", _serve, text, json=False))


def _serve(options: argparse.Namespace) -> int:
    return serve(options.host, options.port, options.workers)
