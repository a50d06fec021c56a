"""Stores the blocks of consumers. A consumer has at most one block at a time. `history.py` reads it for a decision."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime
from uuid import UUID

from cuota.core.risk.block import Block, BlockKind
from cuota.db.session import Session

# A block whose time has passed ends, so that there can be a new one.
_EXPIRE = """UPDATE consumer_blocks SET ended_at = until, ended_by = 'its date'
    WHERE consumer_id = $1 AND ended_at IS NULL AND until <= $2"""
_ADD = """INSERT INTO consumer_blocks (consumer_id, block_id, kind, reason, blocked_at, blocked_by, until)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING 1"""
_END = """UPDATE consumer_blocks SET ended_at = $2, ended_by = $3 WHERE consumer_id = $1 AND ended_at IS NULL
    AND (until IS NULL OR until > $2) RETURNING 1"""
_ALL = """SELECT block_id, kind, reason, blocked_at, blocked_by, until, ended_at, ended_by FROM consumer_blocks
    WHERE consumer_id = $1 ORDER BY blocked_at DESC, block_id DESC LIMIT 50"""


async def add(session: Session, consumer_id: UUID, block: Block) -> bool:
    """Block a consumer. Return False if the consumer is blocked already. Call this in a transaction."""
    await session.fetchrow(_EXPIRE, consumer_id, block.blocked_at)
    return await session.fetchrow(_ADD, consumer_id, *astuple(block)[:6]) is not None


async def end(session: Session, consumer_id: UUID, at: datetime, by: str) -> bool:
    """End the block that is in force. Return False if there is none."""
    return await session.fetchrow(_END, consumer_id, at, by) is not None


async def of_consumer(session: Session, consumer_id: UUID) -> list[Block]:
    """Return a consumer's blocks, the newest first."""
    return [_block(*row) for row in await session.fetch(_ALL, consumer_id)]


def _block(block_id: UUID, kind: str, *rest: object) -> Block:
    return Block(block_id, BlockKind(kind), *rest)  # type: ignore[arg-type]
