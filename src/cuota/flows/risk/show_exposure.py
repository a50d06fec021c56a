"""What a consumer owes at all merchants, against the limit that the policy gives, and what orders reserve at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.risk.facts import History
from cuota.db.risk import history, reservations
from cuota.db.risk.reservations import Reservation
from cuota.db.row_security import everyone
from cuota.flows.context import Context


@dataclass(frozen=True, slots=True)
class ConsumerExposure:
    """Amounts are in cents. `limit` is the most that the consumer may owe by the policy in force."""

    history: History
    limit: int
    reserved: tuple[Reservation, ...]

    @property
    def owed(self) -> int:
        """What the consumer owes, without what orders reserve that are being decided."""
        return self.history.outstanding

    @property
    def left(self) -> int:
        """How much the next order may be, in cents; never below zero."""
        return max(0, self.limit - self.owed - sum(each.amount for each in self.reserved))


async def show_exposure(context: Context, consumer_id: UUID) -> ConsumerExposure:
    """Return a consumer's exposure, as a decision about a new order would see it now."""
    with everyone():
        held = await reservations.of_consumer(context.pool, consumer_id)
        past = await history.past(context.pool, consumer_id, context.now())
    return ConsumerExposure(past, context.policy.limit(past), tuple(held))
