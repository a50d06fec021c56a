"""What the operator's pages read while a node of a cluster is down: of the merchants on the other nodes the same as always."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.payout import PayoutStatus
from cuota.core.risk.review import ReviewState
from cuota.core.risk.signal import SignalKind
from cuota.db.cluster.living import LivingNodes
from cuota.db.dispute import operator_list as disputes
from cuota.db.onboarding import onboardings
from cuota.db.operator import merchant_list, operator_figures
from cuota.db.operator.merchant_list import MerchantQuery, MerchantState
from cuota.db.operator.queues import queues
from cuota.db.order import story
from cuota.db.payout import operator_list as payouts
from cuota.db.plan import charges, rail_figures
from cuota.db.risk import reviews, shared_signals
from cuota.db.session import Session
from cuota.flows.payout.days import days_now
from support.disputes import captured, disputed
from support.makers import Merchant
from support.own_service import Own
from support.payouts import make_payout

Read = Callable[[Session, Own], Awaitable[Any]]
DAY = timedelta(days=1)
READS: dict[str, Read] = {
    "payouts": lambda session, _: payouts.payouts(session, None, 50),
    "payouts with a status": lambda session, _: payouts.payouts(session, PayoutStatus.CREATED, 50),
    "payouts to look at": lambda session, own: payouts.troubled(session, days_now(own.context), 50),
    "count of payouts to look at": lambda session, own: payouts.count_troubled(
        session, days_now(own.context)
    ),
    "held payouts": lambda session, _: payouts.held(session, 50),
    "count of held payouts": lambda session, _: payouts.count_held(session),
    "paused merchants": lambda session, _: payouts.paused(session, None),
    "disputes": lambda session, _: disputes.listed(session, None, 50),
    "disputes to decide": lambda session, _: disputes.to_decide(session, 50),
    "count of disputes to decide": lambda session, _: operator_figures.to_decide(session),
    "waiting reviews": lambda session, _: reviews.waiting(session, None, 50),
    "ended reviews": lambda session, _: reviews.ended(session, ReviewState.DECLINED, None, 50),
    "count of reviews": lambda session, own: reviews.count(session, own.context.now()),
    "merchants to check": lambda session, _: onboardings.count_to_check(session),
    "refused refunds": lambda session, _: charges.failed_refunds(session, 50),
    "sum of refused refunds": lambda session, _: charges.sum_failed(session),
    "overdue amounts": lambda session, own: operator_figures.aging(session, day_at_bank(own.context.now())),
    "webhooks": lambda session, own: operator_figures.backlog(session, own.context.now()),
    "queues": lambda session, own: queues(session, own.context.now()),
    "card rails": lambda session, own: rail_figures.figures(
        session, own.context.rails.card.active.name, own.context.now() - DAY, own.context.now()
    ),
    "shared signals": lambda session, own: shared_signals.shared(
        session, SignalKind.PHONE, own.context.now() - DAY, 1, 50
    ),
    "orders with a reference": lambda session, _: story.find(session, "A-1"),
    **{
        f"merchants in state {state}": lambda session, _, state=state: merchant_list.by_name(  # type: ignore[misc]
            session, MerchantQuery(state=state), "", 50
        )
        for state in (None, *MerchantState)
    },
    "merchants on a page to check": lambda session, own: merchant_list.to_check(session, _ids(own)),
}


def _ids(own: Own) -> list[Any]:
    return [own.merchant.merchant_id, own.auto_merchant.merchant_id]


def living(own: Own, *merchants: Merchant) -> LivingNodes:
    """Return the session for these reads as it is after it found only these merchants on nodes that are up."""
    every = LivingNodes(own.context.pool)
    every._living = [each.merchant_id for each in merchants]
    return every


@pytest.fixture
async def filled(own: Own) -> Own:
    """A service whose two merchants each have a captured order, a dispute, a payout and a webhook."""
    for merchant in (own.merchant, own.auto_merchant):
        order = await (captured(merchant) if merchant is own.merchant else merchant.approved("100.00"))
        await disputed(merchant, order, 4000)
        await make_payout(own.context, merchant.merchant_id)
    return own


async def test_with_every_merchant_on_a_living_node_each_read_returns_what_it_always_returns(
    filled: Own,
) -> None:
    whole = {name: await read(filled.context.pool, filled) for name, read in READS.items()}
    for name, read in READS.items():
        assert await read(living(filled, filled.merchant, filled.auto_merchant), filled) == whole[name], name
    assert len(whole["payouts"]) == len(whole["disputes"]) == 2
    assert whole["shared signals"]


async def test_each_list_has_only_the_merchants_on_living_nodes(filled: Own) -> None:
    every = living(filled, filled.merchant)
    for name in ("payouts", "payouts with a status", "disputes"):
        found = await READS[name](every, filled)
        assert [each.merchant_id for each in found] == [filled.merchant.merchant_id], name
    assert (await READS["card rails"](every, filled)).popitem()[1].charges == 1


async def test_without_a_living_merchant_lists_are_empty_and_counts_are_zero(filled: Own) -> None:
    every = living(filled)
    found = {name: await read(every, filled) for name, read in READS.items()}
    for name in ("payouts", "disputes", "shared signals", "queues", "card rails"):
        match found[name]:
            case list() as rows:
                assert rows == [], name
            case dict() as rows:
                assert not any(getattr(each, "waiting", 0) for each in rows.values()), name
    assert found["count of disputes to decide"] == (0, None)
    assert found["count of held payouts"] == (0, 0)
    assert found["webhooks"].waiting == 0
    # The names of the merchants are on every node.
    assert len(found["merchants in state None"]) == 2
