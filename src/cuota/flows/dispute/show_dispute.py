"""Reads one dispute with all its statements and files."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.db.dispute import listing
from cuota.db.dispute.listing import DisputeOfOrder
from cuota.flows.context import Context
from cuota.flows.dispute.evidence import Statement, statements
from cuota.flows.dispute.read_dispute import dispute_not_found


@dataclass(frozen=True, slots=True)
class ShownDispute:
    """A dispute, and the statements of consumer, merchant and operator, the earliest first."""

    found: DisputeOfOrder
    statements: tuple[Statement, ...]


async def show_dispute(context: Context, merchant_id: UUID, dispute_id: UUID) -> ShownDispute:
    """Return a dispute. Raises Refused if the merchant has no such dispute."""
    found = await listing.one(context.pool, merchant_id, dispute_id)
    if found is None:
        raise dispute_not_found()
    return ShownDispute(found, tuple(await statements(context, merchant_id, dispute_id)))
