"""`cuota consumer block` and `cuota consumer unblock`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from uuid import UUID

from cuota.commands.common import acting, run, show
from cuota.commands.parsers import Add
from cuota.core.instant import timestamp
from cuota.core.operator.reason import read_reason
from cuota.core.risk.block import BLOCK_WORDS, BlockKind, block_until
from cuota.flows.context import Context
from cuota.flows.operator.log_action import OperatorNote
from cuota.flows.risk.block_consumer import Blocked, block_consumer, unblock_consumer


def consumer_block(options: argparse.Namespace) -> int:
    """`cuota consumer block`."""
    until = block_until(options.until) if options.until else None
    kind = BlockKind(options.why)

    async def flow(context: Context) -> Blocked:
        consumer_id = context.vault.consumer_id(options.phone)
        return await block_consumer(context, consumer_id, kind, options.reason, until, by=acting().words)

    after = {"kind": kind.value, "until": until.isoformat() if until else None}
    done = run(flow, _about("consumer.block", options, after))
    ends = f"until {options.until.isoformat()}" if options.until else "until `cuota consumer unblock`"
    lines = [
        f"Blocked {ends}: {BLOCK_WORDS[kind]}. New orders are declined; the consumer can still pay open installments."
    ]
    lines += [
        f"At the same moment, order {each.order_id} was being decided: it is {each.state or 'still being decided or charged'}."
        for each in done.meanwhile
    ]
    facts = {
        "blockId": str(done.block.block_id),
        "kind": kind.value,
        "until": timestamp(until) if until else None,
        "decidedMeanwhile": [
            {"orderId": str(each.order_id), "orderStatus": each.state or None} for each in done.meanwhile
        ],
    }
    show(options, facts, lines)
    return 0


def consumer_unblock(options: argparse.Namespace) -> int:
    """`cuota consumer unblock`."""

    async def flow(context: Context) -> UUID:
        consumer_id = context.vault.consumer_id(options.phone)
        await unblock_consumer(context, consumer_id, by=acting().words)
        return consumer_id

    consumer_id = run(flow, _about("consumer.unblock", options))
    show(
        options,
        {"consumerId": str(consumer_id), "blocked": False},
        ["The block has ended. Orders are decided as usual."],
    )
    return 0


def _about(
    action: str, options: argparse.Namespace, after: dict[str, str | None] | None = None
) -> Callable[[Context], OperatorNote]:
    """Return the entry for the operator's log. The log names the consumer by id, never by phone number."""

    def note(context: Context) -> OperatorNote:
        consumer_id = context.vault.consumer_id(options.phone)
        return OperatorNote(action, f"Consumer {consumer_id}", options.reason, consumer_id, after=after)

    return note


def reason(text: str) -> str:
    """Read the reason for the log."""
    found = read_reason(text)
    if found is None:
        raise argparse.ArgumentTypeError("say why, in a few words; the log keeps the reason")
    return found


def day(text: str) -> date:
    """Read a day."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a day such as 2026-12-05") from None
    if not 2000 <= found.year <= 2200:
        raise argparse.ArgumentTypeError(f"{text} is not a day from 2000 to 2200")
    return found


def register(add: Add, phone: Callable[[str], str]) -> None:
    """Register the two commands in the group `cuota consumer`. `phone` reads a phone number."""
    block = add("block", consumer_block, "decline a consumer's new orders; what is owed can still be paid")
    unblock = add("unblock", consumer_unblock, "end the block of a consumer")
    for parser in (block, unblock):
        parser.add_argument("phone", type=phone, metavar="PHONE", help="the consumer's phone number")
        parser.add_argument("--reason", type=reason, required=True, help="why, for the operator's log")
    block.add_argument(
        "--why",
        choices=[kind.value for kind in BlockKind],
        required=True,
        help="what a consumer whose order is declined is told: identity, misuse, unpaid, or own_request",
    )
    block.add_argument(
        "--until", type=day, metavar="DAY", help="the block ends as this day begins (New York)"
    )
