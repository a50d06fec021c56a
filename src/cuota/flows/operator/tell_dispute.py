"""Writes the operator's step in a dispute into the merchant's own audit log."""

from __future__ import annotations

from uuid import UUID

from cuota.flows.context import Context
from cuota.flows.operator.log_action import OperatorNote, tell_merchant


async def tell_dispute(
    context: Context, merchant_id: UUID, action: str, dispute_id: UUID, **after: str
) -> None:
    """Write an entry about a step that is done. `after` has what the operator chose; it must not contain personal data."""
    note = OperatorNote(action, f"Dispute {dispute_id}", "", after={"dispute": str(dispute_id), **after})
    await tell_merchant(context, merchant_id, note)
