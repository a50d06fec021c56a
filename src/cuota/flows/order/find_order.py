"""Finds the order that an operator names, by the order's id or by the merchant's reference."""

from __future__ import annotations

from uuid import UUID

from cuota.core.expected_failure import ExpectedFailure
from cuota.db.order import story
from cuota.db.risk import decisions
from cuota.flows.context import Context


class NothingToExplain(ExpectedFailure):
    """There is no such order or decision, or it has no plan or letter to show. The text says which."""


async def order_id_of(context: Context, name: str | UUID) -> UUID:
    """Return the id of the order with this id, or of the only order with this reference.

    Raises NothingToExplain if there is no such order, or if several orders have the reference; the text lists those.
    """
    named = str(name)
    try:
        order_id = UUID(named)
    except ValueError:
        pass
    else:
        if await decisions.whose(context.pool, order_id):
            return order_id
    # A reference contains printable characters only. The database may reject others, such as a zero byte.
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
        f"There is no order {named}: this is the id of a decision about order {made.order_id}. "
        f"Run `cuota explain decision {named}`."
    )
