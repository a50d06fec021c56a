"""Disputes after an outage of days: nobody is reminded of a deadline that is over, and the operator sees what stands still."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.db.desk import figures
from cuota.db.dispute import disputes
from cuota.db.operator import queues
from cuota.flows.dispute.answer_dispute import submit_evidence
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.payout.settle_movements import settle_merchant
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.web.pages.desk.dispute_view import next_words
from support.disputes import captured, charged_back, disputed
from support.own_service import Own


async def told(own: Own) -> list[str]:
    """Return the types of all events about disputes, in their order."""
    rows = await own.context.pool.fetch(
        "SELECT type FROM events WHERE type LIKE 'dispute.%' ORDER BY order_id, sequence"
    )
    return [row["type"] for row in rows]


@pytest.mark.parametrize("days", [7, 12], ids=["two days before the deadline", "after the deadline"])
async def test_a_merchant_is_reminded_of_a_chargeback_only_while_it_can_answer(own: Own, days: int) -> None:
    # The network's deadline is on the ninth day.
    dispute = await charged_back(own.merchant, await captured(own.merchant), 2500)
    own.service.clock.ahead += timedelta(days=days)
    await settle_due_disputes(own.context)
    assert await told(own) == ["dispute.opened", *(["dispute.evidence_due"] if days < 9 else [])]
    # The job does not find this chargeback again.
    assert await disputes.due(own.context.pool, own.context.now() + timedelta(days=99), 9) == []
    found = await disputes.find(own.context.pool, own.merchant.merchant_id, dispute.dispute_id)
    assert found is not None
    assert found.dispute.reminded


async def test_a_chargeback_whose_deadline_is_over_does_not_wait_for_an_answer(own: Own) -> None:
    dispute = await charged_back(own.merchant, await captured(own.merchant), 2500)
    waits = await figures.waiting(own.context.pool, own.merchant.merchant_id, own.context.now())
    assert (waits.disputes, waits.respond_by) == (1, dispute.respond_by)
    assert "Answer by" in next_words(dispute, own.context.now())
    own.service.clock.ahead += timedelta(days=12)
    waits = await figures.waiting(own.context.pool, own.merchant.merchant_id, own.context.now())
    assert (waits.disputes, waits.respond_by) == (0, None)
    assert next_words(dispute, own.context.now()) == "The time to answer is over. The card network decides."


async def test_the_operator_sees_an_answer_to_a_chargeback_that_the_processor_does_not_have(own: Own) -> None:
    dispute = await charged_back(own.merchant, await captured(own.merchant), 2500)
    before = own.context.now()
    await submit_evidence(own.context, own.merchant.merchant_id, dispute.dispute_id, "It was delivered.")
    own.service.clock.ahead += timedelta(days=2)
    found = (await queues.queues(own.context.pool, own.context.now()))["chargeback_answers"]
    assert found.waiting == 1
    assert found.since is not None
    assert before <= found.since < before + timedelta(days=1)


async def test_the_operator_sees_that_no_job_decides_disputes_whose_deadline_is_over(own: Own) -> None:
    dispute = await disputed(own.merchant, await captured(own.merchant), 4000)
    own.service.clock.ahead += timedelta(days=15)
    found = (await queues.queues(own.context.pool, own.context.now()))["disputes"]
    assert (found.waiting, found.since) == (1, dispute.due_at)
    while await settle_due_disputes(own.context):
        pass
    assert (await queues.queues(own.context.pool, own.context.now()))["disputes"].waiting == 0


async def test_the_operator_sees_that_no_job_closes_batches(own: Own) -> None:
    await captured(own.merchant)
    await publish_events(own.context)
    await settle_merchant(own.context, own.merchant.merchant_id)
    found = (await queues.queues(own.context.pool, own.context.now()))["batches"]
    assert (found.waiting, found.since) == (0, None)
    own.service.clock.ahead += timedelta(days=3)
    found = (await queues.queues(own.context.pool, own.context.now()))["batches"]
    assert found.waiting == 1
    assert found.since is not None
    assert found.since < own.context.now() - timedelta(days=1)
