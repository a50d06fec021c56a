"""Asking a card rail: the charge is written down before, the answer recorded after, a lost answer looked up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Order
from cuota.core.plan.charge import Charge
from cuota.flows.context import Context
from cuota.rails.card import CardAnswer
from cuota.rails.unavailable import RailUnavailable

RecordAnswer = Callable[[CardAnswer], Awaitable[Order]]


async def ask(context: Context, charge: Charge, record: RecordAnswer) -> Order:
    """Ask the rail and record its word. Raises Charging where there is none yet: the worker looks it up."""
    try:
        answer = await context.rails.card.charge(
            charge.charge_id, charge.card_token, charge.amount, charge.currency
        )
    except RailUnavailable:
        raise Charging from None
    return await record(answer)


async def look_up(context: Context, charge: Charge, record: RecordAnswer) -> bool:
    """A charge whose answer was lost is looked up, and asked for again only under its own key.

    False where the rail has no answer yet.
    """
    try:
        answer = await context.rails.card.find_charge(charge.charge_id)
        if answer is None:
            await ask(context, charge, record)
        else:
            await record(answer)
    except (RailUnavailable, Charging):
        return False
    return True
