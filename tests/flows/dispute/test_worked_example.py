"""The service does exactly what the worked example of docs/disputes.md says."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from cuota.flows.dispute.answer_dispute import decide_dispute, submit_evidence
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.payout.close_batches import close_batches
from cuota.flows.payout.settle_movements import settle_merchant
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.disputes import captured, disputed
from support.own_service import Own
from support.settlement_rows import write_terms

PAGE = Path(__file__).resolve().parents[3] / "docs" / "disputes.md"
_ROW = re.compile(r"\| (\w+ [0-9]+) \| [^|]+ \| (?:`(\w+)`|none) \| (?:(\u2212?)([0-9.]+))? ?\|")
_LINES = "SELECT type, net FROM settlement_lines WHERE order_id = ANY ($1::uuid[]) ORDER BY number"


def example() -> list[tuple[str, int]]:
    """Return the lines of the page's table, in cents."""
    table = PAGE.read_text().partition("## One example, to the cent")[2].partition("**If you had won,**")[0]
    found = [row for row in _ROW.findall(table) if row[1]]
    return [(kind, int(amount.replace(".", "")) * (-1 if sign else 1)) for _, kind, sign, amount in found]


async def lines(own: Own, *orders: dict[str, Any]) -> list[tuple[str, int]]:
    await publish_events(own.context)
    # The lines of a day wait until the batch of the day before has closed.
    while await settle_merchant(own.context, own.merchant.merchant_id) or await close_batches(own.context):
        pass
    ids = [UUID(order["orderId"]) for order in orders]
    return [(row["type"], row["net"]) for row in await own.context.pool.fetch(_LINES, ids)]


async def test_the_service_does_what_the_example_says(own: Own) -> None:
    await write_terms(own.merchant, percent=590, fixed=30, refund_fee="kept")
    first = await captured(own.merchant, "119.96")
    dispute = await disputed(own.merchant, first, 4000, text="The mug never came.")
    second = await captured(own.merchant, "200.00")
    ids = own.merchant.merchant_id, dispute.dispute_id
    own.service.clock.ahead += timedelta(days=3)
    await submit_evidence(own.context, *ids, "The carrier's proof of delivery")
    own.service.clock.ahead += timedelta(days=2)
    await decide_dispute(own.context, *ids, for_consumer=True)
    before = await lines(own, first, second)
    own.service.clock.ahead += timedelta(days=10)
    await settle_due_disputes(own.context)
    after = await lines(own, first, second)
    shown = example()
    assert len(shown) == 7
    assert after == shown
    # No money moves before the time to appeal is over.
    assert before == shown[:5]
    assert [sum(net for _, net in part) for part in (shown[:2], shown[2:5], shown[5:])] == [11258, 14790, 0]


async def test_a_refund_instead_of_an_answer_costs_the_merchant_the_amount_once(own: Own) -> None:
    order = await captured(own.merchant, "119.96")
    await disputed(own.merchant, order, 4000)
    assert (await own.merchant.move(order, "refund", "40.00")).status_code == 200
    assert (await lines(own, order))[1:] == [
        ("dispute_withheld", -4000), ("refund", -4000), ("dispute_released", 4000),
    ]  # fmt: skip
