"""Blocks a consumer, and ends a block.

A checkout that is being decided at the same moment may have read the consumer's history before the block. So a block waits for
these decisions, and reports their results. Every later order is declined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.risk.block import Block, BlockKind
from cuota.db.order import orders
from cuota.db.risk import blocks, reservations
from cuota.db.risk.reservations import Reservation
from cuota.db.row_security import everyone
from cuota.flows.context import Context

# How long a block waits for the decisions that began before it, and the interval between its checks.
PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.05


class CannotBlock(ExpectedFailure):
    """The consumer cannot be blocked or unblocked in this way.

    Nothing was changed. `field` is the wrong part of the request, or empty.
    """

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class DecidedMeanwhile:
    """An order that was being decided when the consumer was blocked.

    `state` is the order's status, or empty if the decision is still in progress.
    """

    order_id: UUID
    state: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """A new block, and the orders that were being decided at that moment."""

    block: Block
    meanwhile: tuple[DecidedMeanwhile, ...] = ()


async def block_consumer(
    context: Context, consumer_id: UUID, kind: BlockKind, reason: str, until: datetime | None, *, by: str
) -> Blocked:
    """Block a consumer until `until`, or until a person ends the block. Raises CannotBlock."""
    now = context.now()
    if until is not None and until <= now:
        raise CannotBlock("Choose a day after today, or none.", "until")
    block_id = context.new_id()
    sealed = context.vault.encrypt(reason, _bound_to(block_id))
    block = Block(block_id, kind, sealed, now, by, until)
    async with context.pool.session() as session, session.transaction():
        if not await blocks.add(session, consumer_id, block):
            raise CannotBlock("The consumer is blocked already. End that block first to make another.")
    return Blocked(block, await _decided_meanwhile(context, consumer_id))


async def unblock_consumer(context: Context, consumer_id: UUID, *, by: str) -> None:
    """End the current block. Raises CannotBlock if there is none."""
    if not await blocks.end(context.pool, consumer_id, context.now(), by):
        raise CannotBlock("The consumer is not blocked.")


async def blocks_of(context: Context, consumer_id: UUID) -> list[Block]:
    """Return a consumer's blocks, the newest first."""
    return await blocks.of_consumer(context.pool, consumer_id)


def reason_of_block(context: Context, block_id: UUID, sealed: bytes | None) -> str:
    """Return the reason of a block; empty after an erasure."""
    return context.vault.decrypt(sealed, _bound_to(block_id)) if sealed else ""


def _bound_to(block_id: UUID) -> str:
    return f"consumer-block:{block_id}"


async def _decided_meanwhile(context: Context, consumer_id: UUID) -> tuple[DecidedMeanwhile, ...]:
    """Wait for the orders that were being decided when the block began.

    A submitted checkout keeps a reservation from the read of the history until the save.
    """
    with everyone():
        before = await reservations.of_consumer(context.pool, consumer_id)
        tickets = {each.ticket for each in before}
        until = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        open_ = tickets
        while open_ and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(PAUSE_SECONDS)
            open_ = tickets & {
                each.ticket for each in await reservations.of_consumer(context.pool, consumer_id)
            }
    return tuple([await _became(context, each, waits=each.ticket in open_) for each in _once(before)])


def _once(found: Sequence[Reservation]) -> list[Reservation]:
    """Return one reservation for each order. Two submissions of one order have one reservation each."""
    return list({each.order_id: each for each in found}.values())


async def _became(context: Context, held: Reservation, *, waits: bool) -> DecidedMeanwhile:
    found = None if waits else await orders.read_with_plan(context.pool, held.merchant_id, held.order_id)
    if found is None:
        return DecidedMeanwhile(held.order_id, "")
    order = found.order
    return DecidedMeanwhile(held.order_id, "" if order.charging else order.status)
