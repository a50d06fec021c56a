"""Tests of the issuing rail and of its simulator."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from cuota.core.checkout.card import passes_luhn
from cuota.core.sandbox import TEST_CARDS
from cuota.rails.bounded import BoundedIssuingRail
from cuota.rails.card_network import CardNetwork, Presented
from cuota.rails.issuing import SandboxIssuingRail, VirtualCard
from cuota.rails.load import NoSuchRail, Rails, load
from cuota.rails.unavailable import RailUnavailable
from support.makers import Running
from support.rails.parts import RealCardRail, rail_parts


@pytest.fixture
def rail(service: Running) -> SandboxIssuingRail:
    return SandboxIssuingRail(*rail_parts(service.context.pool, service.context.vault))


async def issued(rail: SandboxIssuingRail, amount: int = 10_000) -> tuple[Any, VirtualCard]:
    key = uuid4()
    await rail.issue(key, uuid4(), uuid4(), amount, "USD")
    card = await rail.reveal(key)
    assert card is not None
    return key, card


async def test_a_card_number_passes_the_luhn_check_and_is_no_test_card(rail: SandboxIssuingRail) -> None:
    tests = {card.number.replace(" ", "") for card in TEST_CARDS}
    numbers = {(await issued(rail))[1].number for _ in range(20)}
    assert len(numbers) == 20
    assert all(passes_luhn(number) and len(number) == 16 for number in numbers)
    assert not numbers & tests


async def test_concurrent_requests_with_the_same_key_issue_one_card(rail: SandboxIssuingRail) -> None:
    key, merchant, order = uuid4(), uuid4(), uuid4()
    await asyncio.gather(*(rail.issue(key, merchant, order, 10_000, "USD") for _ in range(12)))
    first = await rail.reveal(key)
    await rail.issue(key, merchant, order, 99_999, "USD")
    assert await rail.reveal(key) == first
    sql = "SELECT count(*), max(amount) FROM issuing_simulator.cards WHERE key = $1"
    assert tuple(await rail._books.fetchrow(sql, key)) == (1, 10_000)


async def test_a_hidden_card_is_not_shown_again_but_still_works(
    rail: SandboxIssuingRail, service: Running
) -> None:
    key, card = await issued(rail)
    await rail.hide(key)
    assert await rail.reveal(key) is None
    row = await service.context.pool.fetchrow(
        "SELECT sealed FROM issuing_simulator.cards WHERE key = $1", key
    )
    assert row["sealed"] is None
    network = CardNetwork(service.context.pool, service.context.vault)
    found = await network.find(Presented(card.number, card.cvc, card.month, card.year))
    assert found is not None
    assert (found.key, found.fits) == (key, True)
    assert (await network.authorize(key, 10_000, None, None)).approved


async def test_a_card_s_limit_can_only_be_lowered(rail: SandboxIssuingRail, service: Running) -> None:
    key, _ = await issued(rail)
    await rail.limit(key, 4_000)
    await rail.limit(key, 9_000)
    network = CardNetwork(service.context.pool, service.context.vault)
    refused = await network.authorize(key, 4_001, None, None)
    assert (refused.approved, refused.reason) == (False, "exceeds_limit")
    assert (await network.authorize(key, 4_000, None, None)).approved


async def test_the_repr_of_a_card_shows_none_of_its_data(rail: SandboxIssuingRail) -> None:
    _, card = await issued(rail)
    typed = Presented(card.number, card.cvc, card.month, card.year)
    assert repr(card) == "VirtualCard(brand='visa')"
    assert repr(typed) == "Presented()"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("authorised = 10001", "no_over_authorisation"),
        ("authorised = 5000, captured = 5001", "no_over_capture"),
        ("authorised = 5000, captured = 3000, held = 2001", "no_over_capture"),
        ("authorised = 5000, captured = 3000, reversed = 2001", "no_over_capture"),
        ("authorised = 5000, captured = 5000, spend_limit = 4999", "no_over_capture"),
        ("authorised = 5000, captured = 3000, refunded = 3001", "no_over_refund"),
        ("authorised = 5000, captured = 3000, refunded = 1, going_back = 3000", "no_over_refund"),
        ("spend_limit = 10001", "limit_within_amount"),
        ("held = -1", "none_below_zero"),
    ],
)
async def test_the_database_refuses_impossible_amounts_of_a_card(
    rail: SandboxIssuingRail, service: Running, change: str, rule: str
) -> None:
    key, _ = await issued(rail)
    with pytest.raises(asyncpg.CheckViolationError, match=rule):
        await service.context.pool.execute(f"UPDATE issuing_simulator.cards SET {change} WHERE key = $1", key)


class Hanging(SandboxIssuingRail):
    """An issuer that never answers."""

    async def reveal(self, key: object) -> VirtualCard | None:
        await asyncio.Event().wait()
        return None


async def test_an_issuer_that_hangs_counts_as_unavailable(service: Running) -> None:
    hanging = Hanging(*rail_parts(service.context.pool))
    with pytest.raises(RailUnavailable, match="no answer within"):
        await BoundedIssuingRail(hanging, seconds=0.05).reveal(uuid4())


class RealIssuer(RealCardRail):
    """An operator's rail for virtual cards."""

    issue = reveal = hide = limit = RealCardRail._never


@pytest.mark.parametrize("name", ["sandbox", "cuota.rails.issuing.SandboxIssuingRail"])
async def test_production_refuses_the_simulated_issuer(service: Running, name: str) -> None:
    def loaded(issuing: str) -> Rails:
        names = {
            "card": "support.rails.parts.RealCardRail",
            "message": "tests.rails.test_issuing.RealMessages",
        }
        return load(*rail_parts(service.context.pool, sandbox=False, issuing=issuing, **names))

    with pytest.raises(NoSuchRail, match="CUOTA_ISSUING_RAIL: production needs a real rail or none"):
        loaded(name)
    assert loaded("none").issuing is None
    rails = loaded("tests.rails.test_issuing.RealIssuer")
    assert rails.issuing is not None
    assert rails.card_network is None


class RealMessages:
    """An operator's rail for messages."""

    shown_code = None

    def __init__(self, *given: object) -> None:
        pass

    def new_code(self) -> str:
        return "000000"

    async def send_code(self, *given: object) -> None:
        pass

    async def send(self, *given: object) -> None:
        pass
