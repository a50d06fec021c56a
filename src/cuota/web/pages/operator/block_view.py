"""The texts about the block of a consumer, for the operator's people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cuota.core.risk.block import BLOCK_WORDS, Block, BlockKind
from cuota.flows.context import Context
from cuota.flows.risk.block_consumer import DecidedMeanwhile, reason_of_block
from cuota.web.pages.desk.view import day_of, when
from cuota.web.pages.operator.parts import section
from cuota.web.pages.render import PageContext


def in_force(blocks: Sequence[Block], now: datetime) -> Block | None:
    """Return the current block."""
    return next((each for each in blocks if each.holds(now)), None)


def block_section(context: Context, blocks: Sequence[Block]) -> PageContext | None:
    """Return the section about the current block and the last blocks before it, or None if the consumer was never blocked."""
    if not blocks:
        return None
    held = in_force(blocks, context.now())
    pairs: list[tuple[str, object]] = []
    if held is not None:
        until = f"until {day_of(held.until)}" if held.until else "until a person ends it"
        pairs = [
            ("Blocked", f"since {when(held.blocked_at)}, {until}"),
            ("Why", BLOCK_WORDS[held.kind]),
            ("Reason", reason_of_block(context, held.block_id, held.reason) or "erased"),
            ("By", held.blocked_by),
        ]
    pairs += [("Before", _before(each)) for each in blocks if each is not held]
    return section("Blocked: new orders are declined" if held else "Not blocked now", pairs=pairs)


def _before(block: Block) -> str:
    ended = block.ended_at or block.until
    by = f" by {block.ended_by}" if block.ended_by else ""
    return f"{BLOCK_WORDS[block.kind]}: {when(block.blocked_at)} to {when(ended) if ended else 'now'}{by}"


def kinds() -> list[PageContext]:
    """Return the options of the field."""
    words = {"": "Choose", **{kind.value: BLOCK_WORDS[kind] for kind in BlockKind}}
    return [{"value": value, "label": label} for value, label in words.items()]


def meanwhile_words(found: Sequence[DecidedMeanwhile]) -> str:
    """Return a text with the results of the orders that were being decided when the block began."""
    parts = [f"order {each.order_id} is {each.state or 'still being decided or charged'}" for each in found]
    return (
        f"The consumer is blocked. At the same moment, the consumer was in a checkout: {', '.join(parts)}."
        " Every order after that is declined."
    )
