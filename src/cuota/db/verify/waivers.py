"""Checks that each waived fee is counted in the fees that were waived for its consumer within a year."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from cuota.db.plan.plan_changes import change_of
from cuota.db.session import Session

_WAIVER = "SELECT amount FROM consumer_waivers WHERE consumer_id = $1 AND change_id = $2"


async def disagreements(session: Session, facts: dict[str, Any]) -> AsyncIterator[tuple[str, str]]:
    """Yield every waived fee of an order that differs, as (row, problem). An erased plan no longer names its consumer."""
    if facts["erased"]:
        return
    for change in (change_of(*row) for row in facts["changes"]):
        if not change.waived:
            continue
        row = await session.fetchrow(_WAIVER, facts["consumer_id"], change.change_id)
        counted = None if row is None else row["amount"]
        if counted != change.waived:
            yield (
                f"consumer_waivers {change.change_id}",
                f"counts {counted}, the change waives {change.waived}",
            )
