"""Adds many entries to the audit log of a merchant and to the operator's log, in one statement each."""

from __future__ import annotations

from uuid import UUID

from cuota.db.session import Session

# Entries get ids in their order. An id of UUID version 7 of this century is higher.
_ID = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid"
_AUDIT = f"""INSERT INTO audit_log (merchant_id, entry_id, at, actor, role, address, action, order_id, subject, reason)
    SELECT $1, {_ID}, now(), $2, 'owner', '', $3, $4, 'many', '' FROM generate_series($5::int, $6::int) n"""
_OPERATOR = f"""INSERT INTO operator_log (entry_id, at, actor, role, address, action, about, subject, reason)
    SELECT {_ID}, now(), $1, 'owner', '', $2, $3, 'many', '' FROM generate_series($4::int, $5::int) n"""


async def audited(
    session: Session, merchant_id: UUID, actor: str, numbers: range, order_id: UUID | None = None
) -> None:
    """Add an entry of `actor` to the merchant's log for each number. Higher numbers are newer."""
    await session.fetch(
        _AUDIT, merchant_id, actor, "order.capture", order_id, numbers.start, numbers.stop - 1
    )


async def logged(session: Session, actor: str, numbers: range, about: UUID | None = None) -> None:
    """Add an entry of `actor` to the operator's log for each number. Higher numbers are newer."""
    await session.fetch(_OPERATOR, actor, "merchant.change", about, numbers.start, numbers.stop - 1)
