"""Orders that nobody completed, and authorizations that were not fully captured in time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.card import read_card
from cuota.core.checkout.ending import Charging, Lapsed
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.order import Final
from cuota.core.refusal import Code, Refused
from cuota.flows.checkout.leave_checkout import lapse_order, leave_checkout
from cuota.flows.checkout.take_step import propose
from cuota.flows.context import Context
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.void_order import void_order
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.api.bodies import assert_refused
from support.card import pay
from support.flows.due import settle_all_due
from support.makers import Merchant, Running, checkout, complete


def later(service: Running, **by: float) -> Context:
    """Return the service's context with a separate clock, because other tests share the service's clock."""
    ahead = timedelta(**by)
    return replace(service.context, now=lambda: datetime.now(UTC) + ahead)


async def events_of(merchant: Merchant, order: dict[str, Any]) -> list[str]:
    rows = await merchant.service.context.pool.fetch(
        "SELECT type FROM events WHERE merchant_id = $1 AND order_id = $2 ORDER BY sequence",
        merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    return [row["type"] for row in rows]


async def count(merchant: Merchant, order: dict[str, Any], table: str) -> int:
    row = await merchant.service.context.pool.fetchrow(
        f"SELECT count(*) AS rows FROM {table} WHERE merchant_id = $1 AND order_id = $2",
        merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert row is not None
    return int(row["rows"])


async def test_an_order_that_nobody_finished_is_abandoned_after_60_minutes(merchant: Merchant) -> None:
    order = await merchant.create()
    await settle_all_due(later(merchant.service, minutes=59))
    assert (await merchant.read(order))["orderStatus"] == "Created"
    await settle_all_due(later(merchant.service, minutes=60, seconds=1))
    record = await merchant.read(order)
    assert (record["orderStatus"], record["paymentState"]) == ("Abandoned", "NONE")
    assert await events_of(merchant, order) == ["order.created", "order.abandoned"]
    answer = await merchant.move(order, "capture", "1.00")
    assert_refused(answer, 422, "order_not_completed")


async def test_a_consumer_cannot_pay_after_the_expiry_even_if_the_worker_has_not_run_yet(
    merchant: Merchant,
) -> None:
    order = await merchant.create()
    with pytest.raises(Lapsed):
        await submit(merchant, order, later(merchant.service, minutes=60, seconds=1))
    assert await count(merchant, order, "charges") == 0


async def test_a_final_order_does_not_expire(merchant: Merchant) -> None:
    approved = await merchant.approved("10.00")
    left = await merchant.create()
    await leave_checkout(merchant.service.context, merchant.merchant_id, UUID(left["orderId"]))
    await settle_all_due(later(merchant.service, hours=2))
    assert (await merchant.read(approved))["orderStatus"] == "Approved"
    assert await events_of(merchant, left) == ["order.created", "order.abandoned"]


async def submit(merchant: Merchant, order: dict[str, Any], context: Context | None = None) -> None:
    """Go through the checkout to the payment button, and press it at the time of `context`."""
    seen, _ = await checkout(merchant.service, merchant.merchant_id, order)
    await press(merchant, seen, context or merchant.service.context)


async def press(merchant: Merchant, seen: Any, context: Context) -> None:
    terms = propose(context, seen, seen.session.profile)
    entry = read_card("4242 4242 4242 4242", "12/39", "123", datetime.now(UTC).date())
    await pay(context, seen, entry, terms.agreement.hash)


async def assert_consistent(merchant: Merchant, order: dict[str, Any], pressed: object) -> str:
    """Check that the order has exactly one outcome and that all records agree on it. Return the outcome."""
    status = str((await merchant.read(order))["orderStatus"])
    happened = await events_of(merchant, order)
    charges, plan = await count(merchant, order, "charges"), await count(merchant, order, "installments")
    if status == "Approved":
        assert pressed is None
        assert happened == ["order.created", "order.approved"]
        assert (charges, plan) == (1, 4)
    else:
        assert status == "Abandoned"
        assert isinstance(pressed, Final | Charging | Lapsed), pressed
        assert happened == ["order.created", "order.abandoned"]
        assert (charges, plan, await count(merchant, order, "transfers")) == (0, 0, 0)
    return status


@pytest.mark.parametrize("round_", range(6))
async def test_a_payment_at_the_moment_of_the_expiry_either_succeeds_or_fails_completely(
    merchant: Merchant, round_: int
) -> None:
    context = merchant.service.context
    for turn in range(4):
        order = await merchant.create("40.00")
        order_id = UUID(order["orderId"])
        seen, _ = await checkout(merchant.service, merchant.merchant_id, order)

        async def lapse(order_id: UUID = order_id, turn: int = turn) -> None:
            # The job begins at different moments, so that it meets different statements of the press.
            for _ in range(2 * turn + round_):
                await asyncio.sleep(0)
            await lapse_order(later(merchant.service, hours=2), merchant.merchant_id, order_id)

        pressed, lapsed = await asyncio.gather(
            press(merchant, seen, context), lapse(), return_exceptions=True
        )
        assert lapsed is None
        await assert_consistent(merchant, order, pressed)


async def test_the_expiry_and_the_consumer_can_both_win_the_race(merchant: Merchant) -> None:
    # This test proves that the race above can have both results, and that each is complete.
    first, second = await merchant.create("40.00"), await merchant.create("40.00")
    seen = [(await checkout(merchant.service, merchant.merchant_id, order))[0] for order in (first, second)]
    lapsing = later(merchant.service, hours=2)
    await lapse_order(lapsing, merchant.merchant_id, UUID(first["orderId"]))
    [lost] = await asyncio.gather(press(merchant, seen[0], merchant.service.context), return_exceptions=True)
    assert await assert_consistent(merchant, first, lost) == "Abandoned"
    await press(merchant, seen[1], merchant.service.context)
    await lapse_order(lapsing, merchant.merchant_id, UUID(second["orderId"]))
    assert await assert_consistent(merchant, second, None) == "Approved"


async def test_an_authorization_that_nobody_captured_expires(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await settle_all_due(later(merchant.service, days=12, hours=23))
    assert (await merchant.read(order))["paymentState"] == "AUTHORIZED"
    await settle_all_due(later(merchant.service, days=13, minutes=1))
    record = await merchant.read(order)
    assert (record["orderStatus"], record["paymentState"]) == ("Approved", "EXPIRED")
    assert (record["amount"], record["voidedAmount"], record["capturedAmount"]) == (0, 100, 0)
    assert len(record["voids"]) == 1
    assert (await events_of(merchant, order))[-1] == "authorization.expired"
    # The first payment goes back to the card.
    row = await merchant.service.context.pool.fetchrow(
        "SELECT sum(amount)::bigint AS cents FROM card_refunds WHERE merchant_id = $1 AND order_id = $2",
        merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert row is not None
    assert row["cents"] == 2500


async def test_a_partly_captured_order_keeps_what_was_captured(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "60.00")
    await settle_all_due(later(merchant.service, days=13, minutes=1))
    record = await merchant.read(order)
    assert record["paymentState"] == "CAPTURED"
    assert (record["amount"], record["voidedAmount"], record["capturedAmount"]) == (60, 40, 60)
    assert (await merchant.move(order, "refund", "60.00")).status_code == 200


async def test_a_captured_order_does_not_expire(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "100.00")
    await settle_all_due(later(merchant.service, days=20))
    record = await merchant.read(order)
    assert (record["paymentState"], record["voids"]) == ("CAPTURED", [])


@pytest.mark.parametrize("operation", ["capture", "void"])
async def test_after_the_expiry_a_capture_or_void_is_refused_as_expired(
    merchant: Merchant, operation: str
) -> None:
    order = await merchant.approved("100.00")
    await settle_all_due(later(merchant.service, days=13, minutes=1))
    answer = await merchant.move(order, operation, "1.00")
    assert_refused(answer, 422, "authorization_expired")
    assert answer.json()["balances"]["voided"] == 100


@pytest.mark.parametrize(
    ("kind", "flow"), [(MovementKind.CAPTURE, capture_order), (MovementKind.VOID, void_order)]
)
async def test_a_capture_after_the_authorization_s_end_is_refused_even_if_the_worker_has_not_run_yet(
    merchant: Merchant, kind: MovementKind, flow: Any
) -> None:
    order = await merchant.approved("100.00")
    context, order_id = later(merchant.service, days=13, minutes=1), UUID(order["orderId"])
    with pytest.raises(Refused) as refused:
        await flow(context, merchant.merchant_id, order_id, MovementRequest(kind, "late", 100))
    assert refused.value.code is Code.AUTHORIZATION_EXPIRED
    assert (await merchant.read(order))["paymentState"] == "AUTHORIZED"


async def test_two_workers_together_expire_an_authorization_once(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    context = later(merchant.service, days=13, minutes=1)
    await asyncio.gather(*(settle_all_due(context) for _ in range(4)))
    record = await merchant.read(order)
    assert (record["voidedAmount"], len(record["voids"])) == (100, 1)
    assert (await events_of(merchant, order)).count("authorization.expired") == 1


async def test_a_charge_whose_answer_was_lost_is_looked_up_before_the_order_can_expire(
    merchant: Merchant,
) -> None:
    class Silent(CardRails):
        """A card network that charges the card, but whose answer never arrives."""

        async def charge(self, asked: ChargeRequest) -> CardAnswer:
            await super().charge(asked)
            raise RailUnavailable

    context = merchant.service.context
    order = await merchant.create("40.00")
    seen, _ = await checkout(merchant.service, merchant.merchant_id, order)
    rails = replace(context.rails, card=Silent(context.rails.card.active))
    with pytest.raises(Charging):
        await press(merchant, seen, replace(context, rails=rails))
    assert (await merchant.read(order))["orderStatus"] == "Created"
    await settle_all_due(later(merchant.service, hours=2))
    assert await assert_consistent(merchant, order, None) == "Approved"


async def test_three_failed_cards_decline_the_order_before_it_expires(merchant: Merchant) -> None:
    order = await merchant.create("40.00")
    for _ in range(3):
        await complete(merchant.service, merchant.merchant_id, order, card="4000 0000 0000 0002")
    assert (await merchant.read(order))["orderStatus"] == "Declined"
    await settle_all_due(later(merchant.service, hours=2))
    assert (await events_of(merchant, order)) == ["order.created", "order.declined"]
