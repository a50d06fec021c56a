"""The web origins whose pages may open the checkout by script: add and remove.

Each change and its entry in the audit log are one transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from cuota.db.merchant import merchants
from cuota.flows.context import Context
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import AuditNote, Cause, record

MOST_ORIGINS = 50
Origins = tuple[str, ...]


async def add_origin(context: Context, merchant_id: UUID, origin: str, cause: Cause) -> None:
    """Register an origin. Raises BadChange if it is registered already, or if there are too many."""

    def to(held: Origins) -> Origins:
        if origin in held:
            raise BadChange(f"{origin} is registered already.", "origin")
        if len(held) >= MOST_ORIGINS:
            raise BadChange(f"There are {MOST_ORIGINS} origins already. Remove one first.", "origin")
        return (*held, origin)

    await _changed(context, merchant_id, to, AuditNote("origins.add", origin, cause.reason), cause)


async def remove_origin(context: Context, merchant_id: UUID, origin: str, cause: Cause) -> None:
    """Remove an origin: its pages can no longer open a checkout. Raises BadChange if it is not registered."""

    def to(held: Origins) -> Origins:
        if origin not in held:
            raise BadChange("This origin is not registered any more. Nothing was changed.")
        return tuple(each for each in held if each != origin)

    await _changed(context, merchant_id, to, AuditNote("origins.remove", origin, cause.reason), cause)


async def _changed(
    context: Context, merchant_id: UUID, to: Callable[[Origins], Origins], note: AuditNote, cause: Cause
) -> None:
    async with context.pool.session() as session, session.transaction():
        merchant = await merchants.lock(session, merchant_id)
        assert merchant is not None, "a person of its team is signed in"
        origins = to(merchant.origins)
        await merchants.set_origins(session, merchant_id, origins)
        # All origins before and after, so that one entry shows what is registered now.
        before, after = ({"origins": ", ".join(each) or "none"} for each in (merchant.origins, origins))
        entry = AuditNote(note.action, note.subject, note.reason, before=before, after=after)
        await record(context, merchant_id, cause.actor, entry, session)
