"""The operator's first page adds up all refunds that cards refused, however many there are."""

from __future__ import annotations

from uuid import UUID

from support.own_service import Own
from support.pages.operator_staff import OperatorStaff
from support.refused_refund import refuse_refund

# Copies of the refused refund, for other orders.
_COPY = """INSERT INTO card_refunds SELECT (jsonb_populate_record(r, jsonb_build_object('card_refund_id', gen_random_uuid(),
        'order_id', gen_random_uuid()))).* FROM card_refunds r, generate_series(1, 249) n WHERE r.order_id = $1"""


async def test_the_sum_of_the_refunds_that_are_owed_has_all_of_them(own: Own) -> None:
    order = await refuse_refund(own)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(_COPY, UUID(order["orderId"]))
    async with own.service.client() as http:
        operator = OperatorStaff(http, own.service)
        page = await operator.enter()
        assert "Card refunds owed 250 $3,750.00 that a card refused" in page.text
