"""Statements and files in a dispute: how often a party can send them. No file is kept without its statement."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from cuota.core.dispute.dispute import DisputeParty, DisputeReason, DisputeStatus
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.refusal import Refused
from cuota.db.dispute import disputes
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute import answer_dispute
from cuota.flows.dispute.evidence import MOST_STATEMENTS, store_evidence
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.work.card_refunds import return_due_money
from support.disputes import captured, charged_back, disputed
from support.makers import complete
from support.own_service import Own
from support.phones import phone_number


async def test_a_merchant_that_has_sent_all_its_statements_can_still_appeal_and_accept(own: Own) -> None:
    merchant, context = own.merchant, own.context
    lost = await disputed(own.merchant, await captured(own.merchant), 4000)
    taken = await charged_back(merchant, await captured(own.merchant), 2500)
    for ids in ((merchant.merchant_id, lost.dispute_id), (merchant.merchant_id, taken.dispute_id)):
        for _ in range(MOST_STATEMENTS):
            await answer_dispute.submit_evidence(context, *ids, "It came.")
        with pytest.raises(Refused, match="nothing more can be added"):
            await answer_dispute.submit_evidence(context, *ids, "It came.")
    await answer_dispute.decide_dispute(context, merchant.merchant_id, lost.dispute_id, for_consumer=True)
    ids = merchant.merchant_id, lost.dispute_id
    appealed = await answer_dispute.appeal_dispute(context, *ids, DisputeParty.MERCHANT, "It came.")
    assert appealed.status is DisputeStatus.APPEALED
    accepted = await answer_dispute.accept_dispute(context, merchant.merchant_id, taken.dispute_id)
    assert accepted.status is DisputeStatus.LOST
    assert (await verify(own.context.pool)).disagreements == []


async def test_nobody_can_withdraw_a_chargeback(own: Own) -> None:
    taken = await charged_back(own.merchant, await captured(own.merchant), 2500)
    with pytest.raises(Refused, match="card network decides"):
        await answer_dispute.withdraw_dispute(own.context, own.merchant.merchant_id, taken.dispute_id)
    found = await disputes.find(own.context.pool, own.merchant.merchant_id, taken.dispute_id)
    assert found is not None
    assert found.dispute.status is DisputeStatus.OPEN


async def test_the_files_of_a_statement_that_came_too_late_are_deleted(own: Own) -> None:
    ids = own.merchant.merchant_id, UUID((await captured(own.merchant))["orderId"])
    file = EvidenceFile("note.txt", "text/plain", b"Nothing came.")
    given = own.context, *ids, DisputeReason.NOT_RECEIVED, 4000, "Nothing came.", (file,)
    asked = [open_dispute(*given) for _ in range(4)]
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(each, Refused) for each in ended) == 3
    row = await own.context.pool.fetchrow("SELECT count(*) AS files FROM dispute_files")
    assert row is not None
    assert row["files"] == 1


async def test_an_erasure_deletes_files_whose_statement_was_never_saved(own: Own) -> None:
    shop, phone = own.merchant, phone_number()
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order, phone=phone)
    assert (await shop.move(order, "capture", "100.00")).status_code == 200
    dispute = await disputed(shop, order, 4000)
    ids = shop.merchant_id, dispute.dispute_id
    # Simulate a service that was killed before it saved the statement.
    file = EvidenceFile("note.txt", "text/plain", b"Nothing came.")
    await store_evidence(own.context, *ids, DisputeParty.CONSUMER, "Look", (file,))
    await answer_dispute.withdraw_dispute(own.context, *ids)
    assert (await shop.move(order, "refund", "100.00")).status_code == 200
    await return_due_money(own.context)
    assert (await erase_consumer(own.context, phone, dry_run=False)).done
    row = await own.context.pool.fetchrow("SELECT count(*) AS files FROM dispute_files")
    assert row is not None
    assert row["files"] == 0
