"""Makes an order of every kind through the real flows."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.work.card_refunds import return_due_money
from support.core.values import PROFILE
from support.flows.due import settle_all_due
from support.makers import checkout, complete
from support.own_service import Own

DECLINED, NO_FUNDS = "4000 0000 0000 0002", "4000 0000 0000 9995"
FEE = {"merchantFeeForPaymentPlan": "3.33"}


async def make_one_of_every_kind(own: Own) -> int:
    """Make all of them, and return the number of orders."""
    await _ended_by_themselves(own)
    await _moved(own)
    await return_due_money(own.context)
    await _still_on_its_way(own)
    async with own.owner() as connection:
        found = await connection.fetch("SELECT status, lapsed, card_failures FROM orders")
        states = {row["state"] for row in await connection.fetch("SELECT state FROM card_refunds")}
    assert {row["status"] for row in found} == {"Created", "Approved", "Declined", "Abandoned"}
    assert {row["card_failures"] for row in found} == {0, 1, 3}
    assert any(row["lapsed"] for row in found)
    assert states == {"pending", "succeeded"}
    return len(found)


async def _ended_by_themselves(own: Own) -> None:
    """Make orders that timed out, were canceled, were declined by risk or after three cards, and an ended authorization."""
    merchant, service = own.merchant, own.service
    await merchant.create()
    partly = await merchant.approved("80.00", **FEE)
    assert (await merchant.move(partly, "capture", "30.00")).status_code == 200
    await merchant.approved("90.01")
    async with service.clock.moved(days=14):
        await settle_all_due(own.context)
    left = await merchant.create()
    await leave_checkout(own.context, merchant.merchant_id, UUID(left["orderId"]))
    refused = await merchant.create()
    await complete(service, merchant.merchant_id, refused, profile=replace(PROFILE, surname="Declinetest"))
    failed = await merchant.create()
    for card in (DECLINED, NO_FUNDS, DECLINED):
        await complete(service, merchant.merchant_id, failed, card)


async def _moved(own: Own) -> None:
    """Make orders captured at once or by API calls, with and without a fee, voided and refunded in part and in full."""
    for merchant in (own.auto_merchant, own.merchant):
        for more in ({}, FEE):
            for amount, moves in (
                ("100.00", ()),
                ("200.00", (("refund", "160.00"),)),
                ("100.03", (("refund", "0.01"), ("refund", "99.99"), ("refund", "0.03"))),
            ):
                order = await merchant.approved(amount, **more)
                if merchant is own.merchant:
                    assert (await merchant.move(order, "capture", amount)).status_code == 200
                for operation, part in moves:
                    assert (await merchant.move(order, operation, part)).status_code == 200
            voided = await own.merchant.approved("77.77", **more)
            for part in ("7.77", "70.00"):
                assert (await own.merchant.move(voided, "void", part)).status_code == 200


async def _still_on_its_way(own: Own) -> None:
    """Make an unpaid order, one with a failed charge, a partly captured one, and one whose card refund is still pending."""
    merchant = own.merchant
    await merchant.create()
    await checkout(own.service, merchant.merchant_id, await merchant.create())
    tried = await merchant.create("50.00", **FEE)
    await complete(own.service, merchant.merchant_id, tried, DECLINED)
    await complete(own.service, merchant.merchant_id, tried)
    partly = await merchant.approved("60.00")
    for operation, part in (("capture", "20.00"), ("void", "10.00")):
        assert (await merchant.move(partly, operation, part)).status_code == 200
    returning = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(returning, "refund", "90.00")).status_code == 200
