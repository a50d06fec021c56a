"""A rail's name and form fields, and the cards that the rail stores."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from cuota.rails.card.protocol import CardRail, UnknownToken
from cuota.rails.card.rails import CardRails
from cuota.rails.load import lacks
from support.rails.processor import Processor, a_holder


async def test_the_rail_is_complete_and_its_name_can_be_stored(processor: Processor) -> None:
    assert lacks(processor.rail, CardRail) == []
    assert re.fullmatch(r"[a-z0-9_]{2,32}", processor.rail.name)


async def test_the_fields_can_be_put_into_a_page_and_its_content_security_policy(
    processor: Processor,
) -> None:
    fields = processor.rail.fields()
    assert fields.scripts
    for script in fields.scripts:
        assert script.startswith("/") or urlsplit(script).scheme in {"https", "http"}
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in fields.options.items())
    foreign = {f"{part.scheme}://{part.netloc}" for part in map(urlsplit, fields.scripts) if part.netloc}
    assert foreign <= set(fields.sources.get("script-src", ()))
    for directive, origins in fields.sources.items():
        assert re.fullmatch(r"[a-z]+-src", directive)
        for origin in origins:
            assert re.fullmatch(r"'self'|https?://[a-z0-9.:*-]+", origin)


async def test_a_card_is_stored_with_the_details_that_a_person_recognizes_and_no_others(
    processor: Processor, rails: CardRails
) -> None:
    card = await rails.keep(await processor.browser_token("pays"), a_holder())
    assert card.token.startswith(f"{processor.rail.name}:")
    assert (card.brand.lower(), card.last4) == ("visa", "4242")
    assert "4242424242424242" not in repr(card)


async def test_a_person_can_store_several_cards_for_several_orders(
    processor: Processor, rails: CardRails
) -> None:
    first = a_holder()
    second = a_holder(first.consumer_id)
    one = await rails.keep(await processor.browser_token("pays"), first)
    two = await rails.keep(await processor.browser_token("action"), second)
    assert one.token != two.token
    assert (one.last4, two.last4) == ("4242", "3184")


@pytest.mark.parametrize("token", ["card_nothing", "pm_nothing", "tok_1/../../secret", "x"])
async def test_an_unknown_token_is_refused(rails: CardRails, token: str) -> None:
    with pytest.raises(UnknownToken):
        await rails.keep(token, a_holder())
