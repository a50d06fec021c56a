"""Orders between approved and declined: the referral, the answer of a person or of the job, and the later decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota import config
from cuota.core.order.order import Status
from cuota.core.risk.decision import decide
from cuota.core.risk.facts import Facts
from cuota.core.risk.review import ReviewState
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.risk.answer_review import NoReview, ReviewEnded
from cuota.flows.risk.watch_reviews import watch_reviews
from cuota.web.server import metrics
from cuota.work.due_orders import settle_due_orders
from support import reviews
from support.flows.buttons import opened, press
from support.own_service import Own, opened_own
from support.phones import phone_number
from support.reviews import BEN, buy, decided, opened_referring, referred


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any], folder: Path) -> AsyncIterator[Own]:
    """A service whose policy refers a new consumer's orders."""
    async with opened_referring(settings, own_database, folder) as opened_under_it:
        yield opened_under_it


async def test_a_score_in_the_range_is_referred_and_stores_facts_but_no_decision_charge_or_plan(
    own: Own,
) -> None:
    order, _ = await referred(own)
    row = await reviews.stored(own.service, order)
    facts, policy = Facts.of_inputs(json.loads(row["inputs"])), own.context.policy
    again = decide(facts, policy)
    assert again.referred
    assert (row["score"], row["credit_limit"], row["reasons"]) == (
        again.score,
        again.limit,
        list(again.reasons),
    )
    assert row["policy_version"] == policy.version
    assert row["answer_by"] == (await reviews.stored(own.service, order, "orders"))["expires_at"] - timedelta(
        minutes=10
    )
    async with own.owner() as owner:
        for table in ("decisions", "charges", "plans", "consumer_reservations"):
            assert await owner.fetchval(f"SELECT count(*) FROM {table}") == 0, table
        assert await owner.fetchval("SELECT count(*) FROM signals") > 0
    assert (await verify(own.context.pool)).disagreements == []


async def test_an_approval_becomes_a_fact_of_the_next_decision(own: Own) -> None:
    order, phone = await referred(own)
    await reviews.approve(own.service, order)
    assert (await buy(own, order, phone)).status is Status.APPROVED
    [made] = await decided(own)
    assert json.loads(made["inputs"])["review"] == "approved"
    assert made["reasons"] == ["approved_by_reviewer", "within_limit"]
    assert made["score"] < own.context.policy.score.threshold
    assert (await verify(own.context.pool)).disagreements == []


async def test_the_limit_still_declines_after_an_approval(own: Own) -> None:
    phone, limit = phone_number(), own.context.policy.exposure.new
    first, _ = await referred(own, f"{limit / 100:.2f}", phone)
    second, _ = await referred(own, f"{limit / 100:.2f}", phone)
    for order in (first, second):
        await reviews.approve(own.service, order)
    assert (await buy(own, first, phone)).status is Status.APPROVED
    assert (await buy(own, second, phone)).status is Status.DECLINED
    made = (await decided(own))[-1]
    assert made["reasons"][0] == "over_limit"
    assert json.loads(made["inputs"])["review"] == "approved"
    assert (await verify(own.context.pool)).disagreements == []


async def test_velocity_still_declines_after_an_approval(own: Own) -> None:
    most, phone = own.context.policy.velocity.phone.orders, phone_number()
    order, _ = await referred(own, "60.00", phone)
    await reviews.approve(own.service, order)
    for _ in range(most - 1):
        await referred(own, "60.00", phone)
    assert (await buy(own, await own.merchant.create("60.00"), phone)).status is Status.DECLINED
    assert (await buy(own, order, phone)).status is Status.DECLINED
    assert (await decided(own))[-1]["reasons"][0] == "velocity_phone"


async def test_a_decline_decides_with_the_facts_of_the_referral_under_its_policy(own: Own) -> None:
    order, _ = await referred(own)
    declined = await reviews.decline(own.service, order)
    assert declined.status is Status.DECLINED
    [made] = await decided(own)
    row = await reviews.stored(own.service, order)
    inputs, referral = json.loads(made["inputs"]), json.loads(row["inputs"])
    assert inputs == {**referral, "review": "declined"}
    again = decide(Facts.of_inputs(inputs), own.context.policy)
    assert not again.approved
    assert not again.referred
    assert (made["reasons"], made["score"], made["credit_limit"]) == (
        list(again.reasons),
        again.score,
        again.limit,
    )
    assert made["policy_version"] == row["policy_version"]
    assert (row["state"], row["answerer"], row["reason"]) == ("declined", reviews.ANA.words, reviews.REASON)
    assert (await verify(own.context.pool)).disagreements == []


async def test_the_job_declines_an_order_without_an_answer_and_not_before_the_deadline(own: Own) -> None:
    order, _ = await referred(own)
    async with own.service.clock.moved(minutes=49):
        assert await settle_due_orders(own.context) == 0
    async with own.service.clock.moved(minutes=50):
        assert await settle_due_orders(own.context) == 1
        assert await settle_due_orders(own.context) == 0
    row = await reviews.stored(own.service, order)
    assert (row["state"], row["person_id"], row["answerer"]) == ("unanswered", None, "")
    assert (await reviews.stored(own.service, order, "orders"))["status"] == "Declined"
    assert [event["type"] for event in await events(own, order)] == ["order.created", "order.declined"]
    assert (await verify(own.context.pool)).disagreements == []


async def test_after_an_outage_of_hours_a_waiting_order_is_declined_and_not_abandoned(own: Own) -> None:
    order, _ = await referred(own)
    async with own.service.clock.moved(hours=5):
        assert await settle_due_orders(own.context) == 1
    assert (await reviews.stored(own.service, order, "orders"))["status"] == "Declined"


async def events(own: Own, order: dict[str, Any]) -> list[Any]:
    sql = "SELECT type FROM events WHERE order_id = $1 ORDER BY sequence"
    return list(await own.context.pool.fetch(sql, UUID(order["orderId"])))


async def test_the_second_reviewer_sees_who_answered_and_changes_nothing(own: Own) -> None:
    order, _ = await referred(own)
    await reviews.approve(own.service, order)
    with pytest.raises(ReviewEnded, match=r"Ana Silva <ana@example.com> has approved this order already\."):
        await reviews.decline(own.service, order, BEN)
    assert (await reviews.stored(own.service, order))["state"] == "approved"
    # Repeating the same answer, such as by a second click, is not an error.
    await reviews.approve(own.service, order)


async def test_after_the_deadline_nobody_can_approve_even_if_the_job_has_not_run_yet(own: Own) -> None:
    order, _ = await referred(own)
    async with own.service.clock.moved(minutes=50):
        with pytest.raises(ReviewEnded, match="The time for an answer is over"):
            await reviews.approve(own.service, order)
        await settle_due_orders(own.context)
        with pytest.raises(ReviewEnded, match="The time for an answer is over"):
            await reviews.decline(own.service, order)


async def test_an_order_that_was_never_referred_has_no_review(own: Own) -> None:
    with pytest.raises(NoReview):
        await reviews.approve(own.service, await own.merchant.create())


async def test_if_everybody_ends_a_review_at_the_same_moment_exactly_one_result_is_saved(own: Own) -> None:
    """Two reviewers, the job, the consumer's cancel control, and presses of the button in other tabs."""
    for _ in range(8):
        [seen] = await opened(own, phone_number(), 1, "150.00")
        assert (await press(own.context, seen)).review == "waiting"
        ids = seen.order.merchant_id, seen.order.order_id
        order = {"orderId": str(ids[1]), "redirectUrl": f"http://x/checkout/{ids[0]}?token={seen.token}"}
        ended = await asyncio.gather(
            reviews.approve(own.service, order),
            reviews.decline(own.service, order, BEN),
            leave_checkout(own.context, *ids),
            press(own.context, seen),
            press(own.context, seen),
            return_exceptions=True,
        )
        unexpected = [each for each in ended if isinstance(each, AssertionError | asyncpg.PostgresError)]
        assert unexpected == []
        row = await reviews.stored(own.service, order)
        status = (await reviews.stored(own.service, order, "orders"))["status"]
        fits = {
            "approved": {"Created", "Approved", "Abandoned"},
            "declined": {"Declined"},
            "closed": {"Abandoned"},
        }
        assert status in fits[row["state"]], (row["state"], ended)
    assert (await verify(own.context.pool)).disagreements == []


async def test_many_presses_at_once_make_one_referral(own: Own) -> None:
    [seen] = await opened(own, phone_number(), 1, "150.00")
    await asyncio.gather(*(press(own.context, seen) for _ in range(12)), return_exceptions=True)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM reviews") == 1
        assert await owner.fetchval("SELECT count(*) FROM consumer_reservations") == 0


async def test_an_approval_counts_under_a_policy_that_no_longer_refers_orders(own: Own) -> None:
    order, phone = await referred(own)
    await reviews.approve(own.service, order)
    plain = replace(
        own.context.policy, version="tests-plain", score=replace(own.context.policy.score, refer_from=None)
    )
    own.service.context = replace(own.context, policy=plain, sealed=set())
    assert (await buy(own, order, phone)).status is Status.APPROVED


async def test_the_default_policy_refers_no_order(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened_own(replace(settings, policy=None), own_database) as own:
        assert own.context.policy.score.refer_from is None
        order = await own.merchant.create("600.00")
        assert (await buy(own, order, phone_number())).review is None


async def test_the_metrics_count_referrals_results_of_reviews_and_missed_deadlines(own: Own) -> None:
    made: list[str] = []
    ended: list[str] = []
    seen: list[tuple[int, int]] = []
    own.service.context = replace(
        own.context,
        decided=lambda decision: made.append(decision.outcome),
        reviewed=ended.append,
        reviews_wait=lambda waiting, soon: seen.append((waiting, soon)),
    )
    first, _ = await referred(own)
    second, _ = await referred(own)
    await watch_reviews(own.context)
    async with own.service.clock.moved(minutes=46):
        await watch_reviews(own.context)
    await reviews.approve(own.service, first)
    async with own.service.clock.moved(minutes=51):
        await settle_due_orders(own.context)
        await watch_reviews(own.context)
    assert made == ["referred", "referred", "declined"]
    assert ended == ["approved", "unanswered"]
    assert seen == [(2, 0), (2, 2), (0, 0)]
    assert (await reviews.stored(own.service, second))["state"] == "unanswered"


def test_the_metrics_show_every_result_of_a_review_from_the_start() -> None:
    for state in ReviewState:
        if state is not ReviewState.WAITING:
            metrics.count_review(state)
    metrics.show_reviews(3, 1)
    samples = {
        (each.name, *each.labels.values()): each.value for each in metrics.REVIEWS_WAIT.collect()[0].samples
    }
    assert samples == {("cuota_reviews_open", "waiting"): 3.0, ("cuota_reviews_open", "running_out"): 1.0}
