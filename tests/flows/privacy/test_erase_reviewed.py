"""A person whose order was referred to a person of the operator: what is exported, when they are erased, and what stays."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

from cuota.core.sandbox import REFERRED_SURNAME
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.work.retention import keep_terms
from support import reviews
from support.flows.people import PERSON, PHONE, PREFILL
from support.makers import complete
from support.own_service import Own

WORDS = "Mina Quackenbush lives there"


async def waits(own: Own) -> dict[str, Any]:
    order = await own.merchant.create("100.00", **PREFILL)
    person = replace(PERSON, surname=REFERRED_SURNAME)
    await complete(own.service, own.merchant.merchant_id, order, profile=person, phone=PHONE)
    assert (await reviews.stored(own.service, order))["state"] == "waiting"
    return order


async def told(own: Own) -> None:
    while await send_messages(own.context):
        pass


async def test_nobody_is_erased_while_their_order_waits_for_a_person(own: Own) -> None:
    await waits(own)
    refused = await erase_consumer(own.context, PHONE, dry_run=False)
    assert not refused.done
    (reason,) = refused.reasons
    assert "a person looks at the order" in reason


async def test_an_export_has_the_review_and_what_the_reviewer_wrote(own: Own) -> None:
    order = await waits(own)
    await reviews.decline(own.service, order, reason=WORDS)
    found = await export_consumer(own.context, PHONE)
    (only,) = found["orders"]
    assert (only["reviews"][0]["state"], only["reviews"][0]["reason"]) == ("declined", WORDS)
    assert "inputs_hash" not in json.dumps(found)


async def test_an_erasure_removes_the_reviewers_words_and_keeps_the_facts(own: Own) -> None:
    order = await waits(own)
    await reviews.decline(own.service, order, reason=WORDS)
    assert not (await erase_consumer(own.context, PHONE, dry_run=False)).done, "the letter is not sent yet"
    await told(own)
    assert (await erase_consumer(own.context, PHONE, dry_run=False)).done
    row = await reviews.stored(own.service, order)
    assert (row["reason"], row["state"], row["answerer"]) == ("", "declined", reviews.ANA.words)
    assert row["score"]
    assert (await verify(own.context.pool)).disagreements == []


async def test_who_canceled_while_the_order_waited_is_found_without_a_decision(own: Own) -> None:
    order = await waits(own)
    await leave_checkout(own.context, own.merchant.merchant_id, UUID(order["orderId"]))
    async with own.owner() as owner:
        await owner.execute("DELETE FROM checkout_sessions")
    assert (await export_consumer(own.context, PHONE))["orders"][0]["order_id"] == order["orderId"]
    assert (await erase_consumer(own.context, PHONE, dry_run=False)).done


async def test_after_an_erasure_an_approved_order_cannot_be_confirmed_any_more(own: Own) -> None:
    order = await waits(own)
    await reviews.approve(own.service, order, reason=WORDS)
    assert (await erase_consumer(own.context, PHONE, dry_run=False)).done
    await told(own)
    async with own.owner() as owner:
        sql = "SELECT reason FROM messages WHERE kind = 'review_approved'"
        assert await owner.fetchval(sql) is not None, "nobody to send the link to"


async def test_after_its_term_an_abandoned_order_loses_the_reviewers_words(own: Own) -> None:
    order = await waits(own)
    await reviews.approve(own.service, order, reason=WORDS)
    await leave_checkout(own.context, own.merchant.merchant_id, UUID(order["orderId"]))
    async with own.service.clock.moved(days=91):
        while await keep_terms(own.context):
            pass
    assert (await reviews.stored(own.service, order))["reason"] == ""
