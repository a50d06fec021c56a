"""Only messages with the processor's signature are accepted, and each event has a unique id."""

from __future__ import annotations

import pytest

from cuota.rails.card.protocol import BadEvent, CardEventKind
from cuota.rails.card.rails import CardRails
from support.rails.processor import Processor
from support.rails.promises import bench


async def test_a_message_is_read_and_the_same_event_has_the_same_id(
    processor: Processor, rails: CardRails
) -> None:
    asked = (await bench(processor, "pays")).charge()
    assert (await rails.charge(asked)).approved
    headers, body = await processor.message(asked)
    name, event = await rails.read_event(headers, body)
    assert name == processor.rail.name
    assert event is not None
    assert event.kind is CardEventKind.CHARGE_CHANGED
    assert (event.charge_id, event.merchant_id, event.order_id) == (
        asked.key,
        asked.merchant_id,
        asked.order_id,
    )
    assert event.at.tzinfo is not None
    assert await rails.read_event(headers, body) == (name, event)


async def test_two_events_have_two_ids(processor: Processor, rails: CardRails) -> None:
    card = await bench(processor, "pays")
    ids = set()
    for asked in (card.charge(), card.charge()):
        assert (await rails.charge(asked)).approved
        _, event = await rails.read_event(*await processor.message(asked))
        assert event is not None
        ids.add(event.event_id)
    assert len(ids) == 2


async def test_a_message_that_was_changed_is_refused(processor: Processor, rails: CardRails) -> None:
    asked = (await bench(processor, "pays")).charge()
    assert (await rails.charge(asked)).approved
    headers, body = await processor.message(asked)
    with pytest.raises(BadEvent):
        await rails.read_event(headers, body.replace(str(asked.key).encode(), str(asked.order_id).encode()))


async def test_a_message_without_a_signature_or_with_that_of_another_message_is_refused(
    processor: Processor, rails: CardRails
) -> None:
    card = await bench(processor, "pays")
    one, two = card.charge(), card.charge()
    for asked in (one, two):
        assert (await rails.charge(asked)).approved
    headers, body = await processor.message(one)
    others, _ = await processor.message(two)
    for forged in ({}, others, dict.fromkeys(headers, "t=1,v1=00"), dict.fromkeys(headers, "")):
        with pytest.raises(BadEvent):
            await rails.read_event(forged, body)


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"\xff\xfe", b'{"id": 1}'])
async def test_garbage_is_refused(rails: CardRails, body: bytes) -> None:
    with pytest.raises(BadEvent):
        await rails.read_event({}, body)


async def test_an_old_message_is_refused(processor: Processor, rails: CardRails) -> None:
    asked = (await bench(processor, "pays")).charge()
    assert (await rails.charge(asked)).approved
    old = await processor.old_message(asked)
    if old is None:
        pytest.skip(f"the signatures of {processor.rail.name} have no time")
    with pytest.raises(BadEvent):
        await rails.read_event(*old)
