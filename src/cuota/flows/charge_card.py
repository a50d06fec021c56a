"""Calls a card rail for a charge that is already recorded, and records the answer. A lost answer is looked up later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Order
from cuota.core.plan.charge import Charge
from cuota.core.risk.signal import SignalKind
from cuota.flows.context import Context
from cuota.rails.card import CardAnswer
from cuota.rails.unavailable import RailUnavailable

RecordAnswer = Callable[[CardAnswer], Awaitable[Order]]


def card_hash(context: Context, fingerprint: str) -> bytes | None:
    """Return the keyed hash by which risk knows a card, or None if the card rail gives no fingerprint."""
    return context.vault.hash(f"signal-{SignalKind.CARD}", fingerprint) if fingerprint else None


async def ask(context: Context, charge: Charge, record: RecordAnswer) -> Order:
    """Charge the card and record the rail's answer. Raises Charging if there is no answer; the worker looks it up later."""
    try:
        answer = await context.rails.card.charge(
            charge.charge_id, charge.card_token, charge.amount, charge.currency
        )
    except RailUnavailable:
        raise Charging from None
    return await record(answer)


async def look_up(context: Context, charge: Charge, record: RecordAnswer) -> bool:
    """Look up a charge whose answer was lost. If the rail does not know the charge, request it again under the same key.

    Returns False if the rail has no answer yet.
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
