"""A random walk of captures, refunds, disputes and chargebacks of a few orders through the real flows, and its payout."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from cuota.client import Payout, PayoutLine, SettlementVerdict, Terms, verify_payout
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeParty
from cuota.core.refusal import Refused
from cuota.db.dispute import listing
from cuota.flows.dispute.answer_dispute import (
    accept_dispute,
    appeal_dispute,
    submit_evidence,
    withdraw_dispute,
)
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.payout.settle_movements import settle_merchant
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.contract import read_json
from support.disputes import charged_back, decided, disputed, network_decides
from support.makers import Merchant
from support.own_service import Own
from support.settlement_rows import close

Order = dict[str, Any]
_NEWER = frozenset({"payment", "released"})
_PAID = """SELECT number FROM installments WHERE merchant_id = $1 AND order_id = $2 AND charge_id IS NOT NULL ORDER BY number"""


@dataclass
class ProvenPayout:
    """A payout of the real service with its lines, the merchant's events and terms."""

    payout: Payout
    lines: list[PayoutLine]
    events: list[Mapping[str, Any]]
    terms: list[Terms]

    def verdict(self, **more: Any) -> SettlementVerdict:
        return verify_payout(self.payout, self.lines, self.events, self.terms, **more)

    def named(self, **more: Any) -> set[str | None]:
        return {problem.line_id for problem in self.verdict(**more).problems}


async def walk(own: Own, chance: random.Random, orders: list[Order], steps: int) -> None:
    """Do random operations on these orders. An operation that the service refuses changes nothing."""
    for _ in range(steps):
        order = chance.choice(orders)
        try:
            await chance.choice(_STEPS)(own, chance, order)
        except Refused:
            continue


async def move_money(own: Own, chance: random.Random, order: Order) -> None:
    kind = chance.choice(["capture", "refund", "refund", "void"])
    await own.merchant.move(order, kind, f"{chance.randrange(1, 4000) / 100:.2f}")


async def dispute(own: Own, chance: random.Random, order: Order) -> None:
    await disputed(own.merchant, order, chance.randrange(1, 6000))


async def charge_back(own: Own, chance: random.Random, order: Order) -> None:
    rows = await own.context.pool.fetch(_PAID, own.merchant.merchant_id, UUID(order["orderId"]))
    payment = chance.choice([row["number"] for row in rows])
    await charged_back(own.merchant, order, chance.randrange(1, 3500), payment=payment)


async def answer(own: Own, chance: random.Random, order: Order) -> None:
    found = [each.dispute for each in await _disputes(own.merchant) if str(each.order_id) == order["orderId"]]
    if not found:
        return
    one = chance.choice(found)
    ids = own.merchant.merchant_id, one.dispute_id
    if one.kind is DisputeKind.CHARGEBACK:
        await network_decides(own.merchant, order, one, for_consumer=chance.random() < 0.6)
        return
    what = chance.choice(["accept", "submit", "won", "lost", "withdraw", "appeal"])
    if what == "accept":
        await accept_dispute(own.context, *ids)
    elif what == "submit":
        await submit_evidence(own.context, *ids, "It came.")
    elif what == "withdraw":
        await withdraw_dispute(own.context, *ids)
    elif what == "appeal":
        party = chance.choice([DisputeParty.CONSUMER, DisputeParty.MERCHANT])
        await appeal_dispute(own.context, *ids, party, "No.")
    else:
        await decided(own.merchant, one, for_consumer=what == "lost")


async def let_time_pass(own: Own, chance: random.Random, order: Order) -> None:
    del order
    own.service.clock.ahead += timedelta(days=chance.choice([0, 0, 3, 11]))
    await settle_due_disputes(own.context)


_STEPS = (move_money, move_money, dispute, charge_back, answer, answer, let_time_pass)


async def _disputes(merchant: Merchant) -> list[Any]:
    pool = merchant.service.context.pool
    found = await listing.page(pool, merchant.merchant_id, listing.NEWEST, (), None, 1000)
    return [each for each in found if _is_open(each.dispute)]


def _is_open(dispute: Dispute) -> bool:
    return dispute.is_open


async def paid_out(own: Own) -> ProvenPayout:
    """Settle everything so far, close it into one payout, and read that payout with the merchant's own
    events."""
    merchant = own.merchant
    await publish_events(own.context)
    while await settle_merchant(own.context, merchant.merchant_id):
        pass
    path = f"/payouts/{await close(merchant, at=own.context.now())}"
    payout = Payout.read(await _read(merchant, path))
    lines = [PayoutLine.read(each) for each in await _pages(merchant, f"{path}/lines", "data")]
    terms = [Terms.read(each) for each in (await _read(merchant, "/terms"))["data"]]
    return ProvenPayout(payout, lines, await _events(merchant), terms)


async def _read(merchant: Merchant, path: str, **query: Any) -> dict[str, Any]:
    answer = await merchant.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return dict(read_json(answer.content))


async def _pages(merchant: Merchant, path: str, name: str) -> list[Any]:
    found: list[Any] = []
    after: dict[str, str] = {}
    while True:
        page = await _read(merchant, path, limit=100, **after)
        found += page[name]
        if not page["hasMore"]:
            return found
        after = {"after": page["nextCursor"]}


async def _events(merchant: Merchant) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = await _read(merchant, "/events", limit=100, **after)
        found += page["events"]
        if not page["hasMore"]:
            return found
        after = {"after": found[-1]["id"]}


def without_payments(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the events as a release without `payment` and `released` sent them."""
    return [
        {**event, "dispute": {name: each for name, each in event["dispute"].items() if name not in _NEWER}}
        if "dispute" in event
        else event
        for event in events
    ]
