"""The debt of a consumer at all merchants, the limit of the policy, and the amount that orders reserve now."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.risk.facts import History
from cuota.db.plan import accounts
from cuota.db.risk import history, reservations
from cuota.db.risk.reservations import Reservation
from cuota.db.row_security import everyone
from cuota.flows.context import Context


@dataclass(frozen=True, slots=True)
class ConsumerExposure:
    """Amounts are in cents. `limit` is the most that the consumer may owe under the current policy. `late` is overdue or written off."""

    history: History
    limit: int
    reserved: tuple[Reservation, ...]
    late: int

    @property
    def owed(self) -> int:
        """The consumer's debt, without the reservations of orders that are being decided."""
        return self.history.outstanding

    @property
    def left(self) -> int:
        """The highest possible amount of the next order, in cents; never below zero."""
        return max(0, self.limit - self.owed - sum(each.amount for each in self.reserved))


async def show_exposure(context: Context, consumer_id: UUID) -> ConsumerExposure:
    """Return the exposure that a decision about a new order would use now."""
    with everyone():
        held = await reservations.of_consumer(context.pool, consumer_id)
        past = await history.past(context.pool, consumer_id, context.now())
        late = await accounts.late_of(context.pool, consumer_id)
    return ConsumerExposure(past, context.policy.limit(past), tuple(held), late)
