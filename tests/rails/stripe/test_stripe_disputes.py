"""Evidence at Stripe: files arrive unchanged, and a file that Stripe refuses does not prevent the rest."""

from __future__ import annotations

from uuid import uuid4

import pytest

from cuota.core.dispute.evidence import EvidenceFile
from cuota.rails.card.protocol import ChargebackReply
from cuota.rails.card.stripe_disputes import FILES_MOST, TEXT_MOST
from cuota.rails.unavailable import RailUnavailable
from support.stripe.processor import StripeProcessor, a_bench
from support.stripe.upstream import Json

PDF = EvidenceFile("note.pdf", "application/pdf", b"%PDF-1.7\r\n\x00\xff\r\rrest\n\n")


async def disputed(processor: StripeProcessor) -> tuple[str, Json]:
    asked = (await a_bench(processor)).charge(50_00)
    assert (await processor.rail.charge(asked)).approved
    await processor.dispute(asked)
    (dispute,) = [
        each
        for each in processor.stand_in.disputes.disputes.values()
        if each["payment_intent"] == (await processor.event(asked))["data"]["object"]["id"]
    ]
    return asked.token, dispute


def files_at_stripe(processor: StripeProcessor, dispute: Json) -> list[tuple[str, bytes]]:
    named = [value for name, value in dispute["evidence"].items() if name != "uncategorized_text"]
    return [processor.stand_in.disputes.files[each] for each in named]


async def test_a_file_arrives_byte_for_byte_under_its_name(processor: StripeProcessor) -> None:
    token, dispute = await disputed(processor)
    await processor.rail.answer_chargeback(ChargebackReply(uuid4(), dispute["id"], token, "Sent.", (PDF,)))
    assert dispute["status"] == "under_review"
    assert files_at_stripe(processor, dispute) == [(PDF.name, PDF.content)]


async def test_text_files_are_sent_as_text_and_files_that_stripe_refuses_are_named_in_it(
    processor: StripeProcessor,
) -> None:
    token, dispute = await disputed(processor)
    large = EvidenceFile("large.png", "image/png", b"\x89PNG" + bytes(FILES_MOST))
    webp = EvidenceFile("photo.webp", "image/webp", b"RIFF0000WEBP")
    chat = EvidenceFile("chat.txt", "text/plain", "It arrived, gracias ñ".encode())
    files = (large, webp, chat, PDF)
    await processor.rail.answer_chargeback(ChargebackReply(uuid4(), dispute["id"], token, "Sent.", files))
    assert files_at_stripe(processor, dispute) == [(PDF.name, PDF.content)]
    assert dispute["evidence"]["uncategorized_text"] == (
        "Sent.\n\nNot attached: large.png, photo.webp\n\nchat.txt:\nIt arrived, gracias ñ"
    )


async def test_a_long_text_file_is_cut_and_the_merchants_own_text_is_not(processor: StripeProcessor) -> None:
    token, dispute = await disputed(processor)
    log = EvidenceFile("log.txt", "text/plain", b"x" * TEXT_MOST)
    own = "a" * 5000
    await processor.rail.answer_chargeback(ChargebackReply(uuid4(), dispute["id"], token, own, (log,)))
    text = dispute["evidence"]["uncategorized_text"]
    assert text.startswith(f"{own}\n\nlog.txt:\nx")
    assert len(text) == TEXT_MOST


async def test_a_file_whose_answer_was_lost_is_stored_once(processor: StripeProcessor) -> None:
    token, dispute = await disputed(processor)
    reply = ChargebackReply(uuid4(), dispute["id"], token, "Sent.", (PDF,))
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await processor.rail.answer_chargeback(reply)
    assert dispute["status"] == "needs_response"
    before = len(processor.stand_in.disputes.files)
    await processor.rail.answer_chargeback(reply)
    assert len(processor.stand_in.disputes.files) == before
    assert files_at_stripe(processor, dispute) == [(PDF.name, PDF.content)]


async def test_a_dispute_of_another_account_gets_no_answer(processor: StripeProcessor) -> None:
    token, _ = await disputed(processor)
    with pytest.raises(RailUnavailable):
        await processor.rail.answer_chargeback(ChargebackReply(uuid4(), "dp_unknown", token, "Sent."))
