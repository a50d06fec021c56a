"""Settles due orders in tests."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.work.due_orders import settle_due_orders


async def settle_all_due(context: Context) -> None:
    """Settle due orders, as the worker does, until a pass settles none.

    One pass takes a limited number of orders. Tests that share a service leave orders behind, so one pass of a test that moves the
    clock may not reach the test's own order.
    """
    while await settle_due_orders(context):
        pass
