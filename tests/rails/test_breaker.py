"""The circuit breaker of a card rail: after several calls without an answer, none is sent for a short time."""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest

from cuota.db.plan import charges
from cuota.flows.checkout.submit_checkout import NOT_REACHED
from cuota.flows.checkout.take_step import Problem
from cuota.flows.plan.collect_installments import collect, finish_collection
from cuota.rails.card.breaker import FAILURES, OPEN_SECONDS, Breaker, guarded
from cuota.rails.card.protocol import CardAnswer, declined
from cuota.rails.unavailable import RailUnavailable
from support.makers import complete
from support.own_service import Own


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


async def call(breaker: Breaker, *, answers: bool) -> str:
    """Make one call. Return the result that the metrics would count."""
    told: list[str] = []

    async def act() -> CardAnswer:
        if not answers:
            raise RailUnavailable("the line is down")
        return declined("card_declined")

    with contextlib.suppress(RailUnavailable):
        await guarded(breaker, act, told.append)
    return told[0]


async def test_the_breaker_opens_after_several_failures_in_a_row_and_a_decline_is_no_failure() -> None:
    breaker = Breaker(Stopwatch())
    for _ in range(3):
        assert [await call(breaker, answers=False) for _ in range(FAILURES - 1)] == ["failed"] * (
            FAILURES - 1
        )
        assert await call(breaker, answers=True) == "answered"
    assert [await call(breaker, answers=False) for _ in range(FAILURES + 2)] == ["failed"] * FAILURES + [
        "refused"
    ] * 2
    assert await call(breaker, answers=True) == "refused"


async def test_one_trial_call_closes_the_breaker_or_opens_it_again() -> None:
    watch = Stopwatch()
    breaker = Breaker(watch)
    for _ in range(FAILURES):
        await call(breaker, answers=False)
    watch.seconds += OPEN_SECONDS
    assert await call(breaker, answers=False) == "failed"
    assert await call(breaker, answers=True) == "refused"
    watch.seconds += OPEN_SECONDS
    assert [breaker.admits(), breaker.admits()] == [True, False]
    watch.seconds += OPEN_SECONDS
    assert [await call(breaker, answers=True) for _ in range(2)] == ["answered"] * 2


async def test_while_the_breaker_is_open_a_checkout_asks_to_try_again_shortly_and_records_no_charge(
    own: Own,
) -> None:
    created = await own.auto_merchant.create("100.00")
    cards, watch = own.context.rails.card, Stopwatch()
    cards.breakers["sandbox"] = breaker = Breaker(watch)
    told: list[tuple[str, str]] = []
    cards.called = lambda name, result: told.append((name, result))
    for _ in range(FAILURES):
        breaker.failed()
    with pytest.raises(Problem) as shown:
        await complete(own.service, own.auto_merchant.merchant_id, created)
    assert shown.value.notice == NOT_REACHED
    assert NOT_REACHED.endswith("Nothing was charged; please try again shortly.")
    assert told == [("sandbox", "refused")]
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM charges") == 0
        assert await owner.fetchval("SELECT status FROM orders") == "Created"
    watch.seconds += OPEN_SECONDS
    assert (await complete(own.service, own.auto_merchant.merchant_id, created)).status == "Approved"


async def test_a_charge_that_the_breaker_refused_is_made_once_after_it_has_closed(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    ids = (own.auto_merchant.merchant_id, UUID(order["orderId"]))
    watch = Stopwatch()
    own.context.rails.card.breakers["sandbox"] = breaker = Breaker(watch)
    for _ in range(FAILURES):
        breaker.failed()
    async with own.service.clock.moved(days=15):
        await collect(own.context, *ids)
        await collect(own.context, *ids)
        waiting = await charges.pending(own.context.pool, *ids)
        assert waiting is not None
        assert not await finish_collection(own.context, *ids, waiting)
        watch.seconds += OPEN_SECONDS
        assert await finish_collection(own.context, *ids, waiting)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM card_simulator.charges") == 2
        assert await owner.fetchval("SELECT count(*) FROM charges WHERE state = 'succeeded'") == 2
