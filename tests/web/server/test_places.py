"""The rules of admission, tested without a service: how many places there are, and which requests get them."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from cuota.core.refusal import Code, Refused
from cuota.db import gathered
from cuota.db.gathered import Gathered, Gatherer
from cuota.web.server.admission import PUT_OFF, Admission, AdmissionSlot
from cuota.web.server.parties import MOST_KNOWN, STRANGERS, name_of
from cuota.web.server.places import ENOUGH, LEAST, MOST, PATIENCE, START, WINDOW, AdmissionSlots
from support.server.crowd import Clock, fill, gone_round, known, routed, scope_of


async def test_one_merchant_s_flood_leaves_places_for_every_other() -> None:
    admission, others = Admission(Clock()), [f"Bearer honest-{number}" for number in range(3)]
    await known(admission, "Bearer greedy", *others)
    fill(admission, others, 3)
    held, admission._stood = 0, admission.places.all // 8
    for _ in range(5):
        flood = [admission.enter(scope_of("Bearer greedy")) for _ in range(1_000)]
        held += sum(place is not None for place in flood)
        assert admission.places.all // 12 <= held <= admission.places.all // 4, "a queue stands"
        for caller in others:
            assert len(fill(admission, [caller], 6)) == 6


async def test_a_burst_of_one_merchant_is_admitted_if_there_is_no_queue() -> None:
    admission, others = Admission(Clock()), [f"Bearer honest-{number}" for number in range(9)]
    await known(admission, "Bearer bursting", *others)
    fill(admission, others, 9)
    fill(admission, ["Bearer bursting"], admission.places.all // 2 - 10)
    flood = [admission.enter(scope_of("Bearer bursting")) for _ in range(1_000)]
    assert sum(place is not None for place in flood) <= 1, "half is the most, whatever was before"


async def test_a_queue_in_the_past_does_not_limit_admission() -> None:
    admission, others = Admission(clock := Clock()), [f"Bearer honest-{number}" for number in range(9)]
    await known(admission, "Bearer bursting", *others)
    admission._stood = admission._fewest = admission._count = 100
    clock.now += 10 * WINDOW
    fill(admission, ["Bearer bursting"], admission.places.all // 2)


async def test_a_single_merchant_can_use_all_places() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer only")
    flood = [admission.enter(scope_of("Bearer only")) for _ in range(1_000)]
    assert sum(place is not None for place in flood) == admission.places.all


async def test_a_refused_caller_counts_as_a_party_so_that_a_flood_blocks_it_for_one_turn_at_most() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer greedy", "Bearer late")
    for turn in range(3):
        flood = [(admission.enter(scope := scope_of("Bearer greedy")), scope) for _ in range(1_000)]
        late = admission.enter(scope_of("Bearer late", "POST", "/order"))
        assert (late is None) == (turn == 0), "the one who comes last finds the others' places taken, once"
        for place, scope in flood:
            if place is not None:
                admission.leave(place, scope)
        await gone_round()


async def flood_of(admission: Admission, *late: str, crowd: str = "Bearer greedy") -> list[bool]:
    """In one turn of the event loop, a thousand requests of one caller come first.

    Return which of the others get a place.
    """
    flood = [(admission.enter(scope := scope_of(crowd)), scope) for _ in range(1_000)]
    taken = [(admission.enter(scope := scope_of(caller, "POST", "/order")), scope) for caller in late]
    for place, scope in (*flood, *taken):
        if place is not None:
            admission.leave(place, scope)
    await gone_round()
    return [place is not None for place, _ in taken]


async def test_a_refused_caller_gets_a_place_a_second_later_even_during_a_flood() -> None:
    admission = Admission(clock := Clock())
    await known(admission, "Bearer greedy", "Bearer late")
    assert await flood_of(admission, "Bearer late") == [False]
    for _ in range(9):
        clock.now += WINDOW * 1.05
        await flood_of(admission)
    clock.now += WINDOW * 1.05
    assert await flood_of(admission, "Bearer late") == [True]


async def test_a_new_order_that_found_no_place_does_not_cause_the_refusal_of_the_next_one() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer late")
    for turn in range(5):
        found = await flood_of(admission, *["Bearer late"] * 9, crowd="Bearer forged")
        assert found == [turn > 0] * 9
        admission.places.moved_on()
    assert admission.places.for_new == START * 0.75


async def test_a_refused_caller_that_does_not_return_stops_counting_as_a_party() -> None:
    admission = Admission(clock := Clock())
    await known(admission, "Bearer greedy", "Bearer late")
    assert await flood_of(admission, "Bearer late") == [False]
    for _ in range(4 * round(PUT_OFF / WINDOW)):
        clock.now += WINDOW * 1.05
        await flood_of(admission)
    assert admission._count == 1


async def test_many_unknown_callers_take_no_places_from_new_orders() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer honest")
    for _ in range(20):
        flood = [(admission.enter(scope := scope_of(f"Bearer {uuid4()}")), scope) for _ in range(300)]
        for place, scope in flood:
            if place is not None:
                admission.leave(place, scope)
        await gone_round()
        admission.places.moved_on()
    assert admission.places.for_new == START * 0.75


async def test_floods_of_any_number_of_public_areas_leave_half_the_places_to_merchants() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer honest")
    fill(admission, ["Bearer honest"], 1)
    parts = (
        "docs", "static", "v1", "sandbox", ".well-known", "account", "sdk", "orders", "oauth", "checkout", "nowhere",
    )  # fmt: skip
    scopes = [routed({"method": "GET", "path": f"/{part}/x", "headers": []}) for part in parts]
    flood = [admission.enter(scope) for _ in range(100) for scope in (*scopes, scope_of("Bearer bad"))]
    assert sum(place is not None for place in flood) == admission.places.all // 2
    for _ in range(12):
        assert admission.enter(scope_of("Bearer honest", "POST", "/order")) is not None


async def test_without_merchants_requests_the_public_areas_can_use_all_places() -> None:
    admission = Admission(Clock())
    scopes = [
        routed({"method": "GET", "path": f"/{part}/x", "headers": []}) for part in ("docs", "oauth", "sdk")
    ]
    flood = [admission.enter(scope) for _ in range(100) for scope in scopes]
    assert sum(place is not None for place in flood) >= admission.places.all - 3


async def test_any_number_of_bad_tokens_counts_as_one_party() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer honest")
    fill(admission, ["Bearer honest"], 1)
    flood = [admission.enter(scope_of(f"Bearer {uuid4()}")) for _ in range(1_000)]
    assert sum(place is not None for place in flood) == admission.places.all // 2
    fill(admission, ["Bearer honest"], 8)


async def test_an_invalid_token_takes_no_places_from_its_merchant() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer revoked", "Bearer new")
    scope = scope_of("Bearer revoked")
    place = admission.enter(scope)
    assert place is not None
    assert place.party != STRANGERS
    admission.leave(place, scope, 401)
    after, new = admission.enter(scope), admission.enter(scope_of("Bearer new"))
    assert after is not None
    assert new is not None
    assert (after.party, new.party == STRANGERS) == (STRANGERS, False)


async def test_a_merchant_with_any_number_of_tokens_does_not_make_other_merchants_unknown() -> None:
    admission = Admission(Clock())
    await known(admission, "Bearer honest")
    scope = scope_of("Bearer other")
    for number in range(2 * MOST_KNOWN):
        place = AdmissionSlot(STRANGERS, number + 1, 0.0)
        admission.in_hand += 1
        admission._held[STRANGERS] = admission._held.get(STRANGERS, 0) + 1
        admission.leave(place, {**scope, "merchant_id": UUID(int=1), "token_good": True})
    await gone_round()
    honest = admission.enter(scope_of("Bearer honest"))
    assert honest is not None
    assert honest.party != STRANGERS
    assert len(admission.parties._known) < MOST_KNOWN // 10


async def test_bad_tokens_that_are_refused_at_once_also_count_until_the_end_of_the_loop_s_turn() -> None:
    admission, let_in = Admission(Clock()), 0
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


def test_a_space_after_a_token_does_not_make_it_another_token() -> None:
    assert name_of(b"Bearer x \t") == name_of(b"Bearer x")


def window(places: AdmissionSlots, seconds: float, *refused: str) -> None:
    """Let a tenth of a second pass, in which calls took this long and some were refused."""
    for why in refused:
        places.refused(why)
    for _ in range(ENOUGH):
        places._window_ends = 1.0
        places.done(seconds, 0.0)
    places.done(seconds, 1.0)


def test_slow_calls_reduce_the_number_of_places_and_refused_quick_calls_raise_it() -> None:
    places = AdmissionSlots()
    for _ in range(PATIENCE - 1):
        window(places, 0.8)
    assert places.all == START, "a moment is no overload"
    window(places, 0.8)
    assert LEAST <= places.all < START
    for _ in range(20):
        window(places, 0.8)
    assert places.all == LEAST
    window(places, 0.002)
    assert places.all == LEAST, "no request was refused, so no more places are needed"
    for _ in range(40):
        window(places, 0.002, "share")
    assert places.all == MOST


def test_a_constantly_slow_database_does_not_count_as_overload() -> None:
    places = AdmissionSlots()
    for _ in range(3_000):
        window(places, 0.25)
    window(places, 0.25, "full")
    before = places.all
    window(places, 0.25, "full")
    assert places.all > before


def test_while_other_calls_are_refused_fewer_places_are_for_new_orders() -> None:
    places = AdmissionSlots()
    for _ in range(10):
        places.refused("full")
        places.moved_on()
    assert places.for_new < places.all * 0.05
    for _ in range(20):
        places.refused("creation")
        places.moved_on()
    assert places.for_new == places.all * 0.75


async def test_new_orders_get_their_places_back_even_if_no_merchant_s_call_ends() -> None:
    admission = Admission(clock := Clock())
    for _ in range(3):
        admission.places.refused("full")
        admission.places.moved_on()
    assert admission.places.for_new < START * 0.3
    for _ in range(20):
        clock.now += WINDOW
        place = admission.enter(scope := scope_of("Bearer nobody's"))
        assert place is not None
        admission.leave(place, scope)
        await gone_round()
    assert admission.places.for_new == START * 0.75


async def test_a_merchant_s_queue_at_the_database_has_a_limit() -> None:
    gate = asyncio.Event()

    async def one(session: object, asked: int) -> int:
        await gate.wait()
        return asked

    async def many(session: object, asked: list[int]) -> list[int]:
        return list(asked)

    gatherer = Gatherer(None, None, lambda _: False)
    kind: Gathered[int, int] = Gathered(one, many)
    merchant, other = uuid4(), uuid4()
    asked = [asyncio.create_task(gatherer.ask(kind, merchant, 0))]
    await gone_round()
    more = range(1, gathered.MOST_WAITING + 1)
    asked += [asyncio.create_task(gatherer.ask(kind, merchant, number)) for number in more]
    await gone_round()
    with pytest.raises(Refused, match="nothing was applied") as refused:
        await gatherer.ask(kind, merchant, -1)
    assert refused.value.code is Code.UNAVAILABLE
    asked.append(asyncio.create_task(gatherer.ask(kind, other, 7)))
    gate.set()
    assert await asyncio.gather(*asked) == [*range(gathered.MOST_WAITING + 1), 7]
    await gatherer.finish()
