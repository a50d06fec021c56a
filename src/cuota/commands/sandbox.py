"""`cuota sandbox`: complete a checkout, and list the messages to consumers."""

from __future__ import annotations

import argparse
from urllib.parse import urlsplit

import httpx

from cuota import config
from cuota.commands.checkout_walker import CannotWalk, walk
from cuota.commands.common import one_line, run, show
from cuota.commands.parsers import Add
from cuota.flows.context import Context
from cuota.rails.inbox import KEPT, Received, look


def _require_address(text: str) -> None:
    """Raise CannotWalk if the text is not a web address."""
    try:
        parts = urlsplit(text)
        found = parts.scheme in {"http", "https"} and bool(parts.netloc)
    except ValueError:
        found = False
    if not found:
        raise CannotWalk(f"{text} is not a checkout address. Give the redirectUrl of an order.")


def sandbox_complete(options: argparse.Namespace) -> int:
    """`cuota sandbox complete`."""
    _require_address(options.redirect_url)
    try:
        typed = {"card_number": options.card, "phone": options.phone}
        given = {name: value for name, value in typed.items() if value}
        address = walk(options.redirect_url, options.outcome, **given)
    except httpx.HTTPError as problem:
        raise CannotWalk(
            f"The checkout cannot be reached: {problem}. Is the service running at {_origin(options.redirect_url)}?"
        ) from None
    except (httpx.InvalidURL, ValueError) as problem:
        raise CannotWalk(f"The redirectUrl is not a valid address: {problem}.") from None
    show(options, {"outcome": options.outcome, "url": address}, [address])
    return 0


def _origin(address: str) -> str:
    return str(httpx.URL(address).copy_with(raw_path=b"/"))


def sandbox_inbox(options: argparse.Namespace) -> int:
    """`cuota sandbox inbox`."""
    if config.environment() != "sandbox":
        raise config.BadSettings(
            "CUOTA_ENVIRONMENT is production, which has no inbox because messages are really sent. Run this in the sandbox."
        )

    async def flow(context: Context) -> list[Received]:
        return await look(context.pool, to=options.to or "", limit=options.limit)

    found = run(flow)
    none = f"No messages have been sent to {options.to}." if options.to else "No messages have been sent."
    show(options, [_facts(each) for each in found], _lines(found) or [none])
    return 0


def _facts(received: Received) -> dict[str, str]:
    return {
        "id": str(received.key),
        "channel": received.channel,
        "to": received.recipient,
        "subject": received.subject,
        "text": received.text,
        "createdAt": received.created_at.isoformat(),
    }


def _lines(found: list[Received]) -> list[str]:
    lines = []
    for each in found:
        at = f"{each.created_at:%Y-%m-%d %H:%M:%S} UTC"
        words = [each.subject, *each.text.splitlines()] if each.channel == "mail" else each.text.splitlines()
        lines += [f"{at}  {each.channel} to {each.recipient}", *(f"    {one_line(line)}" for line in words)]
    return lines


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= KEPT:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {KEPT}")
    return int(text)


def _recipient(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError("must be a phone number or a mail address")
    return text


def register(add: Add) -> None:
    """`cuota sandbox ...`."""
    complete = add(
        "complete",
        sandbox_complete,
        "complete a hosted checkout, as a browser without JavaScript would",
    )
    complete.add_argument("redirect_url", metavar="REDIRECT_URL", help="the order's redirectUrl")
    complete.add_argument(
        "--outcome", choices=["approved", "declined", "abandoned", "referred"], required=True
    )
    complete.add_argument(
        "--card", metavar="NUMBER", help="pay with this test card (default 4242 4242 4242 4242)"
    )
    complete.add_argument("--phone", metavar="NUMBER", help="phone number of the consumer")
    inbox = add("inbox", sandbox_inbox, "list the messages to consumers, newest first")
    inbox.add_argument(
        "--to",
        type=_recipient,
        metavar="PHONE_OR_EMAIL",
        help="only messages to this phone number or mail address",
    )
    inbox.add_argument(
        "--limit", type=_limit, default=20, metavar="N", help="number of messages (default 20)"
    )
