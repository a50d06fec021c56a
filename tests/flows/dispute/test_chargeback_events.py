"""The processor's events about a chargeback are booked once, in any order. The merchant's answer is sent once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.core.checkout.ending import Charging
from cuota.core.dispute.dispute import Dispute, DisputeOutcome, DisputeStatus
from cuota.db.dispute import disputes
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.answer_dispute import submit_evidence, withdraw_dispute
from cuota.flows.dispute.send_answers import BACKOFF, send_answers
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.store_card_event import store_card_event
from cuota.rails.card.protocol import CardAnswer, CardEvent, CardEventKind, ChargebackReply, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.disputes import disputed
from support.flows.due import settle_all_due
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own

OPENED = (CardEventKind.DISPUTE_OPENED, "needs_response")
CHANGED = (CardEventKind.DISPUTE_CHANGED, "under_review")
WON = (CardEventKind.DISPUTE_CLOSED, "won")
LOST = (CardEventKind.DISPUTE_CLOSED, "lost")
Ids = tuple[UUID, UUID]


async def an_order(own: Own, *, refunded: bool = False, captured: str | None = None) -> tuple[Ids, UUID]:
    """An approved order of 100.00, captured whole unless an amount is given, and the id of its first charge, of 25.00."""
    merchant = own.merchant if captured else own.auto_merchant
    order = await merchant.approved("100.00")
    if captured:
        assert (await merchant.move(order, "capture", captured)).status_code == 200
    if refunded:
        assert (await merchant.move(order, "refund", "100.00")).status_code == 200
    order_id = UUID(order["orderId"])
    async with own.owner() as owner:
        charge_id = await owner.fetchval("SELECT charge_id FROM charges WHERE order_id = $1", order_id)
    return (merchant.merchant_id, order_id), charge_id


async def report(own: Own, ids: Ids, charge_id: UUID, *kinds: tuple[CardEventKind, str]) -> None:
    """Store these events of one dispute, and apply them one after the other."""
    for kind, status in kinds:
        event = CardEvent(
            f"evt_{uuid4()}", kind, own.context.now(), *ids, charge_id, amount=2500, reason="fraudulent",
            reference=f"dp_{charge_id.hex}", status=status, respond_by=own.context.now() + timedelta(days=9),
        )  # fmt: skip
        assert await store_card_event(own.context, "sandbox", event)
        assert await apply_card_events(own.context) == 1


async def all_of(own: Own, ids: Ids) -> list[Dispute]:
    assert (await verify(own.context.pool)).disagreements == []
    return list(await disputes.of_order(own.context.pool, *ids))


@pytest.mark.parametrize(
    "kinds",
    [
        (OPENED, CHANGED, LOST),
        (LOST, OPENED, CHANGED),
        (CHANGED, LOST, OPENED),
        (OPENED, OPENED, LOST, LOST, CHANGED),
        (OPENED, LOST, WON),
    ],
)
async def test_a_lost_chargeback_is_booked_once_in_any_order_of_its_events(
    own: Own, kinds: tuple[Any, ...]
) -> None:
    ids, charge_id = await an_order(own)
    await report(own, ids, charge_id, *kinds)
    (done,) = await all_of(own, ids)
    assert (done.status, done.outcome) == (DisputeStatus.CLOSED, DisputeOutcome.LOST)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT refunded FROM orders WHERE order_id = $1", ids[1]) == 2500


async def test_a_lost_chargeback_of_an_order_captured_in_part_is_both_a_refund_and_a_void(own: Own) -> None:
    ids, charge_id = await an_order(own, captured="5.00")
    await report(own, ids, charge_id, OPENED, LOST)
    await all_of(own, ids)
    async with own.owner() as owner:
        rows = await owner.fetch(
            "SELECT kind, amount FROM movements WHERE order_id = $1 AND kind <> 'capture' ORDER BY kind",
            ids[1],
        )
    assert [tuple(row) for row in rows] == [("refund", 500), ("void", 2000)]


async def test_a_lost_chargeback_also_takes_the_amount_captured_after_it_opened(own: Own) -> None:
    ids, charge_id = await an_order(own, captured="5.00")
    await report(own, ids, charge_id, OPENED)
    order = {"orderId": str(ids[1])}
    assert (await own.merchant.move(order, "capture", "95.00")).status_code == 200
    await report(own, ids, charge_id, LOST)
    await all_of(own, ids)
    async with own.owner() as owner:
        row = await owner.fetchrow(
            "SELECT refunded, voided, disputed FROM orders WHERE order_id = $1", ids[1]
        )
    assert tuple(row) == (2500, 0, 0)


async def test_the_card_is_not_charged_after_a_lost_chargeback_when_another_dispute_of_the_order_ends(
    own: Own,
) -> None:
    ids, charge_id = await an_order(own)
    other = await disputed(own.auto_merchant, {"orderId": str(ids[1])}, 1000)
    await report(own, ids, charge_id, OPENED, LOST)
    await withdraw_dispute(own.context, ids[0], other.dispute_id)
    assert [each.is_open for each in await all_of(own, ids)] == [False, False]
    for _ in range(20):
        own.service.clock.ahead += timedelta(days=3)
        await settle_all_due(own.context)
    async with own.owner() as owner:
        charges = "SELECT count(*) FROM charges WHERE order_id = $1"
        assert await owner.fetchval(charges, ids[1]) == 1
        states = (
            "SELECT count(*) FROM installments WHERE order_id = $1 AND failures > 0 AND charge_at IS NULL"
        )
        assert await owner.fetchval(states, ids[1]) == 3


@pytest.mark.parametrize("kinds", [(OPENED, WON), (WON, OPENED), (WON, CHANGED, WON)])
async def test_a_won_chargeback_gives_the_merchant_everything_back(own: Own, kinds: tuple[Any, ...]) -> None:
    ids, charge_id = await an_order(own)
    await report(own, ids, charge_id, *kinds)
    (done,) = await all_of(own, ids)
    assert (done.status, done.outcome) == (DisputeStatus.CLOSED, DisputeOutcome.WON)
    async with own.owner() as owner:
        row = await owner.fetchrow("SELECT refunded, charged_back FROM orders WHERE order_id = $1", ids[1])
    assert tuple(row) == (0, 0)


async def test_a_chargeback_closed_without_a_known_decision_stays_open_until_the_decision_arrives(
    own: Own,
) -> None:
    ids, charge_id = await an_order(own)
    await report(own, ids, charge_id, OPENED, (CardEventKind.DISPUTE_CLOSED, "prevented"))
    (still,) = await all_of(own, ids)
    assert (still.status, still.withheld) == (DisputeStatus.OPEN, 2500)
    await report(own, ids, charge_id, LOST)
    (done,) = await all_of(own, ids)
    assert done.outcome is DisputeOutcome.LOST


async def test_an_inquiry_books_nothing_until_it_becomes_a_dispute(own: Own) -> None:
    ids, charge_id = await an_order(own)
    await report(own, ids, charge_id, (CardEventKind.DISPUTE_OPENED, "warning_needs_response"))
    assert await all_of(own, ids) == []
    await report(own, ids, charge_id, (CardEventKind.DISPUTE_CHANGED, "needs_response"))
    (opened,) = await all_of(own, ids)
    assert (opened.status, opened.withheld) == (DisputeStatus.OPEN, 2500)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("end", [WON, LOST])
async def test_a_refunded_or_unknown_payment_withholds_nothing_from_the_merchant(
    own: Own, *, known: bool, end: tuple[CardEventKind, str]
) -> None:
    ids, first = await an_order(own, refunded=known)
    charge_id = first if known else uuid4()
    await report(own, ids, charge_id, OPENED)
    (opened,) = await all_of(own, ids)
    assert opened.withheld == 0
    await report(own, ids, charge_id, end)
    (closed,) = await all_of(own, ids)
    assert closed.status is DisputeStatus.CLOSED


async def test_a_chargeback_never_reaches_another_merchants_order(own: Own) -> None:
    ids, charge_id = await an_order(own)
    event = CardEvent(
        "evt_1", CardEventKind.DISPUTE_OPENED, own.context.now(), own.merchant.merchant_id, ids[1], charge_id,
        amount=2500, reference="dp_1", status="needs_response",
    )  # fmt: skip
    assert not await store_card_event(own.context, "sandbox", event)
    assert await all_of(own, ids) == []


async def test_events_that_two_workers_apply_at_the_same_time_open_one_chargeback(own: Own) -> None:
    ids, charge_id = await an_order(own)
    for number in range(6):
        kind, status = (OPENED, CHANGED)[number % 2]
        event = CardEvent(
            f"evt_{number}", kind, own.context.now(), *ids, charge_id, amount=2500, reason="fraudulent",
            reference="dp_1", status=status,
        )  # fmt: skip
        assert await store_card_event(own.context, "sandbox", event)
    await asyncio.gather(apply_card_events(own.context), apply_card_events(own.context))
    assert len(await all_of(own, ids)) == 1


class LossyRails(CardRails):
    """The card rails on a line that loses the first answers. `asked` has the keys of the replies that arrived."""

    def __init__(self, rails: CardRails, lost: int) -> None:
        super().__init__(rails.active)
        self.lost = lost
        self.asked: list[UUID] = []

    async def answer_chargeback(self, reply: ChargebackReply) -> None:
        await super().answer_chargeback(reply)
        self.asked.append(reply.key)
        if len(self.asked) <= self.lost:
            raise RailUnavailable("the answer was lost")


async def test_evidence_whose_answer_was_lost_is_sent_once_more_with_the_same_key(
    own: Own,
) -> None:
    ids, charge_id = await an_order(own)
    await report(own, ids, charge_id, OPENED)
    (opened,) = await all_of(own, ids)
    await submit_evidence(own.context, ids[0], opened.dispute_id, "Signed for.")
    rails = LossyRails(own.context.rails.card, lost=1)
    context = replace(own.context, rails=replace(own.context.rails, card=rails))
    assert await asyncio.gather(send_answers(context), send_answers(context)) in ([0, 1], [1, 0])
    assert await send_answers(context) == 0
    later = own.context.now() + BACKOFF[0]
    after = replace(context, now=lambda: later)
    assert await send_answers(after) == 1
    assert await send_answers(after) == 0
    assert len(rails.asked) == 2
    assert len(set(rails.asked)) == 1
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT evidence FROM card_simulator.disputes") == "Signed for."


class DeafRail(FlakyRail):
    """A rail that cannot be asked about earlier charges."""

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        raise RailUnavailable(f"no answer about {asked.key}")


async def test_a_chargeback_waits_for_the_answer_to_its_charge_and_then_pauses_the_plan(own: Own) -> None:
    shop, context = own.auto_merchant, own.context
    created = await shop.create("100.00")
    own.service.context = with_rail(context, FlakyRail(context.rails.card, lost=1))
    with pytest.raises(Charging):
        await complete(own.service, shop.merchant_id, created)
    own.service.context = context
    ids = shop.merchant_id, UUID(created["orderId"])
    [row] = await context.pool.fetch("SELECT charge_id FROM charges WHERE order_id = $1", ids[1])
    opened = CardEvent(
        f"evt_{uuid4()}", OPENED[0], context.now(), *ids, charge_id=row["charge_id"], amount=2500,
        reason="fraudulent", reference="dp_1", status=OPENED[1], respond_by=context.now() + timedelta(days=9),
    )  # fmt: skip
    await store_card_event(context, "sandbox", opened)
    await apply_card_events(with_rail(context, DeafRail(context.rails.card)))
    assert await all_of(own, ids) == []
    own.service.clock.ahead += timedelta(minutes=5)
    await apply_card_events(context)
    (dispute,) = await all_of(own, ids)
    assert dispute.withheld == 2500
    own.service.clock.ahead += timedelta(days=16)
    await settle_all_due(context)
    assert len(await context.pool.fetch("SELECT 1 FROM charges WHERE order_id = $1", ids[1])) == 1
    assert (await verify(context.pool)).disagreements == []
