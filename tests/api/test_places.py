"""How many places there are, and who gets them: the rules of admission, without a service."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from crowd import fill, gone_round, known, scope_of

from cuota.core.refusal import Code, Refused
from cuota.db import gathered
from cuota.db.gathered import Gathered, Gatherer
from cuota.web.admission import Admission
from cuota.web.places import ENOUGH, LEAST, MOST, PATIENCE, START, Places


async def test_one_merchant_s_flood_leaves_places_for_every_other() -> None:
    admission, others = Admission(), [f"Bearer honest-{number}" for number in range(3)]
    await known(admission, "Bearer greedy", *others)
    fill(admission, others, 3)
    held, admission._stood = 0, admission.places.all // 8
    for _ in range(5):
        flood = [admission.enter(scope_of("Bearer greedy")) for _ in range(1_000)]
        held += sum(place is not None for place in flood)
        assert admission.places.all // 12 <= held <= admission.places.all // 4, "a queue stands"
        for caller in others:
            assert len(fill(admission, [caller], 6)) == 6


async def test_a_burst_of_one_merchant_is_taken_where_no_queue_stands() -> None:
    admission, others = Admission(), [f"Bearer honest-{number}" for number in range(9)]
    await known(admission, "Bearer bursting", *others)
    fill(admission, others, 9)
    fill(admission, ["Bearer bursting"], admission.places.all // 2 - 10)
    flood = [admission.enter(scope_of("Bearer bursting")) for _ in range(1_000)]
    assert sum(place is not None for place in flood) <= 1, "half is the most, whatever was before"


async def test_a_queue_of_long_ago_holds_nobody_back() -> None:
    admission, others = Admission(), [f"Bearer honest-{number}" for number in range(9)]
    await known(admission, "Bearer bursting", *others)
    admission._stood = admission._fewest = admission._count = 100
    admission._window_ends = 0.0
    fill(admission, ["Bearer bursting"], admission.places.all // 2)


async def test_who_is_alone_has_all_the_places() -> None:
    admission = Admission()
    await known(admission, "Bearer only")
    flood = [admission.enter(scope_of("Bearer only")) for _ in range(1_000)]
    assert sum(place is not None for place in flood) == admission.places.all


async def test_any_number_of_bad_tokens_counts_as_one_party() -> None:
    admission = Admission()
    await known(admission, "Bearer honest")
    fill(admission, ["Bearer honest"], 1)
    flood = [admission.enter(scope_of(f"Bearer {uuid4()}")) for _ in range(1_000)]
    assert sum(place is not None for place in flood) == admission.places.all // 2
    fill(admission, ["Bearer honest"], 8)


async def test_bad_tokens_that_are_refused_at_once_fill_the_turn_of_the_loop_too() -> None:
    admission, let_in = Admission(), 0
    for _ in range(1_000):
        scope = scope_of(f"Bearer {uuid4()}")
        place = admission.enter(scope)
        if place is not None:
            let_in += 1
            admission.leave(place, scope)
    assert let_in == admission.places.all
    await gone_round()
    assert admission.in_hand == 0
    assert admission.enter(scope_of("Bearer next")) is not None


def window(places: Places, seconds: float, *refused: str) -> None:
    """A tenth of a second goes by, in which calls took so long and some were refused."""
    for why in refused:
        places.refused(why)
    for _ in range(ENOUGH):
        places._window_ends = 1.0
        places.done(seconds, 0.0)
    places.done(seconds, 1.0)


def test_slow_calls_make_places_fewer_and_refusals_of_quick_ones_more() -> None:
    places = Places()
    for _ in range(PATIENCE - 1):
        window(places, 0.8)
    assert places.all == START, "a moment is no overload"
    window(places, 0.8)
    assert LEAST <= places.all < START
    for _ in range(20):
        window(places, 0.8)
    assert places.all == LEAST
    window(places, 0.002)
    assert places.all == LEAST, "nobody was refused, so nobody needs more"
    for _ in range(40):
        window(places, 0.002, "share")
    assert places.all == MOST


def test_a_database_that_is_always_slow_is_no_overload() -> None:
    places = Places()
    for _ in range(3_000):
        window(places, 0.25)
    window(places, 0.25, "full")
    before = places.all
    window(places, 0.25, "full")
    assert places.all > before


def test_while_others_find_no_place_fewer_are_for_new_orders() -> None:
    places = Places()
    for _ in range(10):
        window(places, 0.02, "full")
    assert places.for_new < places.all * 0.05
    for _ in range(20):
        window(places, 0.02, "creation")
    assert places.for_new == places.all * 0.75


async def test_a_merchant_s_queue_at_the_database_has_an_end() -> None:
    gate = asyncio.Event()

    async def one(session: object, asked: int) -> int:
        await gate.wait()
        return asked

    async def many(session: object, asked: list[int]) -> list[int]:
        return list(asked)

    gatherer = Gatherer(None, None, lambda _: False)
    kind: Gathered[int, int] = Gathered(one, many)
    merchant, other = uuid4(), uuid4()
    asked = [gatherer.ask(kind, merchant, 0)]
    await gone_round()
    asked += [gatherer.ask(kind, merchant, number + 1) for number in range(gathered.MOST_WAITING)]
    with pytest.raises(Refused, match="nothing was applied") as refused:
        gatherer.ask(kind, merchant, -1)
    assert refused.value.code is Code.UNAVAILABLE
    asked.append(gatherer.ask(kind, other, 7))
    gate.set()
    assert await asyncio.gather(*asked) == [*range(gathered.MOST_WAITING + 1), 7]
    await gatherer.finish()
