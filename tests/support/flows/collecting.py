"""Code that the tests of collecting share: the current plan, the clock, and the charges at the card network."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.db.plan import plans
from cuota.db.plan.plans import Agreed
from support.own_service import Own

ZONE = ZoneInfo("America/Los_Angeles")  # the state of makers.PROFILE


async def agreed(own: Own, order_id: UUID) -> Agreed:
    found = await plans.read(own.context.pool, own.auto_merchant.merchant_id, order_id)
    assert found is not None
    return found


def set_clock(own: Own, at: datetime) -> None:
    """Move the service's clock to this instant. The clock then continues to run."""
    clock = own.service.clock
    clock.ahead += at - clock.now() + timedelta(seconds=1)


async def charged(own: Own) -> list[tuple[int, int, str]]:
    """Return the charges that the card network has recorded."""
    async with own.owner() as owner:
        rows = await owner.fetch(
            "SELECT c.installment, s.amount, CASE WHEN s.approved THEN 'paid' ELSE s.reason END FROM charges c"
            " JOIN card_simulator.charges s ON s.key = c.charge_id ORDER BY c.created_at"
        )
        assert await owner.fetchval("SELECT count(*) FROM card_simulator.charges") == len(rows)
    return [tuple(row) for row in rows]
