"""The stored data of a review always agrees with its order. It can be verified, repeated, explained, and simulated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota import config
from cuota.core.risk.policy import load_policy
from cuota.db.verify.recalculate import verify
from cuota.flows.risk import review_decisions
from cuota.flows.risk.explain_order import explain_order
from support import reviews
from support.own_service import Own
from support.reviews import buy, opened_referring, referred, referring


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any], folder: Path) -> AsyncIterator[Own]:
    """A service whose policy refers a new consumer's orders."""
    async with opened_referring(settings, own_database, folder) as opened_under_it:
        yield opened_under_it


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE reviews SET state = 'approved', answered_at = now(), answerer = 'x'",
        "UPDATE reviews SET score = score + 1",
        "UPDATE reviews SET inputs = '{}'",
        "UPDATE orders SET review = NULL, review_by = NULL",
        "UPDATE orders SET status = 'Approved'",
        "UPDATE orders SET charging = gen_random_uuid(), charging_since = now()",
        "UPDATE orders SET review_by = NULL",
        "UPDATE orders SET review = 'declined', review_by = NULL",
    ],
)
async def test_the_database_refuses_changes_that_make_an_order_disagree_with_its_review(
    own: Own, change: str
) -> None:
    await referred(own)
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute(change)


async def test_the_database_refuses_a_second_answer_to_a_review(own: Own) -> None:
    order, _ = await referred(own)
    await reviews.approve(own.service, order)
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute("UPDATE reviews SET answerer = 'somebody else'")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE reviews SET inputs = jsonb_set(inputs::jsonb, '{amount}', '1')::json", "reviews"),
        ("UPDATE reviews SET state = 'approved'", "orders.review"),
        ("DELETE FROM reviews", "orders.review"),
        ("UPDATE reviews SET score = score + 1", "decisions"),
        ("DELETE FROM decisions", "decisions"),
        (
            "UPDATE decisions SET inputs = jsonb_set(inputs::jsonb, '{review}', '\"approved\"')::json",
            "decisions",
        ),
    ],
)
async def test_verify_finds_data_that_was_changed_directly_in_the_database(
    own: Own, change: str, named: str
) -> None:
    order, _ = await referred(own)
    await reviews.decline(own.service, order)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(change)
    assert named in {found.row for found in (await verify(own.context.pool)).disagreements}


async def test_referrals_and_their_decisions_are_repeated_and_explained_in_words(own: Own) -> None:
    waiting, _ = await referred(own)
    declined, _ = await referred(own)
    await reviews.decline(own.service, declined)
    approved, phone = await referred(own)
    await reviews.approve(own.service, approved)
    await buy(own, approved, phone)
    done = await review_decisions.replay(own.context, review_decisions.BEGINNING, review_decisions.END, None)
    assert (done.decisions, done.referrals, done.differences) == (2, 3, [])
    told = await explain_order(own.context, UUID(declined["orderId"]))
    text = "\n".join(told.lines)
    assert "REFERRED by policy tests-refer." in text
    assert f"review declined by {reviews.ANA.words} ({reviews.REASON})" in text
    assert "The order was referred to a person and not approved." in text
    assert "From 500 on, a person decides." in text
    assert told.facts["review"]["state"] == "declined"
    assert len(told.facts["decisions"]) == 1
    text = "\n".join((await explain_order(own.context, UUID(waiting["orderId"]))).lines)
    assert "referred to a person, who must answer by" in text


async def test_the_replay_reports_a_referral_with_changed_facts(own: Own) -> None:
    await referred(own)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            "UPDATE reviews SET inputs = jsonb_set(inputs::jsonb, '{history,overdue_installments}', '9')::json"
        )
    done = await review_decisions.replay(own.context, review_decisions.BEGINNING, review_decisions.END, None)
    [difference] = done.differences
    assert {"inputs", "referred"} <= set(difference.values)


async def test_a_simulation_counts_the_orders_that_a_policy_would_refer(own: Own) -> None:
    waiting, _ = await referred(own)
    approved, phone = await referred(own)
    await reviews.approve(own.service, approved)
    await buy(own, approved, phone)
    declined, _ = await referred(own)
    await reviews.decline(own.service, declined)
    del waiting

    async def simulated(text: str) -> review_decisions.Simulated:
        policy = load_policy(text)
        return await review_decisions.simulate(
            own.context, policy, review_decisions.BEGINNING, review_decisions.END, None
        )

    same = await simulated(referring(600, 500))
    assert (same.approved.orders, same.declined.orders, same.referred.orders) == (1, 1, 1)
    assert (same.would_approve.orders, same.would_decline.orders, same.would_refer.orders) == (0, 0, 3)
    assert same.newly_referred.orders == 0
    lenient = await simulated(referring(500, 400))
    assert (lenient.would_approve.orders, lenient.newly_approved.orders) == (3, 2)
    strict = await simulated(referring(600, 599))
    assert (strict.would_decline.orders, strict.newly_declined.orders) == (3, 2)
