"""A rail reports chargebacks completely, and sends the merchant's answer to the processor once."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from cuota.core.dispute.evidence import EvidenceFile
from cuota.flows.context import utc_now
from cuota.rails.card.protocol import CardEvent, CardEventKind, ChargebackReply, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.rails.processor import DisputeInBooks, Processor
from support.rails.promises import bench

PDF = EvidenceFile("delivery note.pdf", "application/pdf", b"%PDF-1.7\r\n\x00\xff\n--edge\r\n")
PNG = EvidenceFile('photo "1".png', "image/png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))


async def dispute_events(processor: Processor, rails: CardRails, asked: ChargeRequest) -> list[CardEvent]:
    found = await rails.events_since(processor.rail.name, utc_now() - timedelta(days=30))
    return [each for each in found if each.charge_id == asked.key and each.kind.startswith("dispute.")]


async def charged_back(processor: Processor, rails: CardRails) -> tuple[ChargeRequest, CardEvent]:
    asked = (await bench(processor, "disputed")).charge(50_00)
    assert (await rails.charge(asked)).approved
    await processor.dispute(asked)
    (opened,) = await dispute_events(processor, rails, asked)
    return asked, opened


def reply_to(
    asked: ChargeRequest, opened: CardEvent, text: str = "Signed for on Friday.", **more: object
) -> ChargebackReply:
    assert opened.reference is not None
    return ChargebackReply(uuid4(), opened.reference, asked.token, text, **more)  # type: ignore[arg-type]


async def test_a_chargeback_is_listed_with_everything_to_book_and_always_under_the_same_id(
    processor: Processor, rails: CardRails
) -> None:
    asked, opened = await charged_back(processor, rails)
    assert opened.kind is CardEventKind.DISPUTE_OPENED
    assert (opened.merchant_id, opened.order_id) == (asked.merchant_id, asked.order_id)
    assert (opened.amount, opened.reason, opened.status) == (50_00, "product_not_received", "needs_response")
    assert opened.reference
    assert opened.respond_by is not None
    assert opened.respond_by > utc_now()
    assert await dispute_events(processor, rails, asked) == [opened]


async def test_evidence_with_files_reaches_the_processor_once(processor: Processor, rails: CardRails) -> None:
    asked, opened = await charged_back(processor, rails)
    reply = reply_to(asked, opened, files=(PDF, PNG))
    for _ in range(3):
        await rails.answer_chargeback(reply)
    assert await processor.dispute_in_books(reply.reference) == DisputeInBooks(reply.text, 2, accepted=False)


async def test_later_evidence_does_not_replace_the_first(processor: Processor, rails: CardRails) -> None:
    asked, opened = await charged_back(processor, rails)
    first, second = reply_to(asked, opened, "the first"), reply_to(asked, opened, "the second")
    for reply in (first, second):
        await rails.answer_chargeback(reply)
    assert (await processor.dispute_in_books(first.reference)).text == "the first"


async def test_evidence_whose_request_or_answer_was_lost_is_sent_again_and_counts_once(
    processor: Processor, rails: CardRails
) -> None:
    asked, opened = await charged_back(processor, rails)
    reply = reply_to(asked, opened)
    with processor.lost_request(), pytest.raises(RailUnavailable):
        await rails.answer_chargeback(reply)
    assert (await processor.dispute_in_books(reply.reference)).text is None
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await rails.answer_chargeback(reply)
    assert (await processor.dispute_in_books(reply.reference)).text == reply.text
    await rails.answer_chargeback(reply)
    assert await processor.dispute_in_books(reply.reference) == DisputeInBooks(reply.text, 0, accepted=False)


async def test_an_accepted_chargeback_is_lost_at_once_and_reported_once(
    processor: Processor, rails: CardRails
) -> None:
    asked, opened = await charged_back(processor, rails)
    reply = reply_to(asked, opened, accepts=True)
    for _ in range(2):
        await rails.answer_chargeback(reply)
    assert (await processor.dispute_in_books(reply.reference)).accepted
    closed = [
        each
        for each in await dispute_events(processor, rails, asked)
        if each.kind is CardEventKind.DISPUTE_CLOSED
    ]
    assert [(each.status, each.reference, each.amount) for each in closed] == [
        ("lost", opened.reference, 50_00)
    ]
