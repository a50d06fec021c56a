"""The page closes while its customer pays: there is one result and one event, and the money is right."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from uuid import UUID

from cuota.core.checkout.card import read_card
from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Final
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.take_step import propose
from support.card import pay
from support.makers import checkout
from support.own_service import Own
from support.signed import sdk_body, send


async def test_leaving_and_paying_at_once_has_one_result_and_the_money_is_right(own: Own) -> None:
    shop, context = own.merchant, own.context
    ends: Counter[str] = Counter()

    async def race(number: int) -> None:
        raw = json.dumps(sdk_body(shop, capture=bool(number % 2), merchantReference=f"L{number}")).encode()
        order = (await send(shop, raw)).json()
        seen, _ = await checkout(own.service, shop.merchant_id, order)
        assert seen.session.profile is not None
        terms = propose(context, seen, seen.session.profile)
        card = read_card("4242 4242 4242 4242", "12/39", "123", datetime.now(UTC).date())

        async def press() -> None:
            # The delays reach from well before the other request's commit to well after it.
            await asyncio.sleep(number % 16 / 1000)
            try:
                await pay(context, seen, card, terms.agreement.hash)
            except (Final, Charging):
                return

        await asyncio.gather(send(shop, raw, "/leave"), press())
        end = (await send(shop, raw)).json()
        ends[end["orderStatus"]] += 1
        assert ("result" in end) == (end["orderStatus"] == "Approved")
        sql = "SELECT type FROM events WHERE order_id = $1 ORDER BY sequence"
        told = [row["type"] for row in await context.pool.fetch(sql, UUID(order["orderId"]))]
        finals = [name for name in told if name in {"order.approved", "order.abandoned", "order.declined"}]
        assert finals == [f"order.{end['orderStatus'].lower()}"]
        charged = await context.pool.fetch(
            "SELECT 1 FROM charges WHERE order_id = $1", UUID(order["orderId"])
        )
        assert len(charged) == (end["orderStatus"] == "Approved")

    for first in range(0, 64, 16):
        await asyncio.gather(*(race(first + number) for number in range(16)))
    assert set(ends) <= {"Approved", "Abandoned"}
    assert (await verify(context.pool)).disagreements == []
    assert ends.total() == 64
