"""An operator sees exactly the letter about a declined order that was sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from cuota.core.order.order import Status
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.risk.explain_order import letter_of
from support.makers import PROFILE, complete
from support.own_service import Own
from support.phones import phone_number


async def test_the_shown_letter_equals_the_sent_one_even_if_the_date_in_utc_differs(
    own: Own,
) -> None:
    # In California, where the consumer lives, this is the evening of the day before.
    now = own.service.clock.now()
    tomorrow = (now + timedelta(days=1)).replace(hour=3, minute=0)
    async with own.service.clock.moved(seconds=(tomorrow - now).total_seconds()):
        order = await own.merchant.create("900.00")
        payer = replace(PROFILE, surname="Declinetest")
        merchant_id = own.merchant.merchant_id
        done = await complete(own.service, merchant_id, order, profile=payer, phone=phone_number())
        assert done.status is Status.DECLINED
        await send_messages(own.context)
        async with own.owner() as owner:
            sent = await owner.fetchval(
                "SELECT text FROM message_simulator.inbox WHERE channel = 'mail' AND subject LIKE 'About%'"
            )
            decision_id = await owner.fetchval("SELECT decision_id FROM decisions WHERE NOT approved")
        shown = await letter_of(own.context, decision_id)
    assert "\n".join(shown.lines) == sent
