"""Which order an operator means, who has its id or only the merchant's reference."""

from __future__ import annotations

from uuid import UUID

from cuota.db.order import story
from cuota.db.risk import decisions
from cuota.flows.context import Context


class NothingToExplain(Exception):
    """There is no such thing, or nothing of the kind to tell of it."""


async def order_id_of(context: Context, name: str | UUID) -> UUID:
    """By the order's own id, or by the merchant's reference where only one order has it."""
    named = str(name)
    try:
        order_id = UUID(named)
    except ValueError:
        pass
    else:
        if await decisions.whose(context.pool, order_id):
            return order_id
    # What cannot be printed can be no reference, and perhaps not even be sent to the database.
    found = await story.find(context.pool, named) if named.isprintable() else []
    if not found:
        raise NothingToExplain(await _no_order(context, named))
    if len(found) > 1:
        listed = [f"  {order_id}  {merchant}" for _, order_id, merchant in found]
        more = len(found) == story.MOST_FOUND
        head = f"{'At least ' if more else ''}{len(found)} orders have the reference {named}. Choose one by its id:"
        raise NothingToExplain("\n".join([head, *listed]))
    return found[0][1]


async def _no_order(context: Context, named: str) -> str:
    try:
        made = await decisions.read(context.pool, UUID(named))
    except ValueError:
        made = None
    if made is None:
        return f"There is no order {named}."
    return (
        f"There is no order {named}: it is a decision. `cuota explain decision {named}` explains it; its order is "
        f"{made.order_id}."
    )
