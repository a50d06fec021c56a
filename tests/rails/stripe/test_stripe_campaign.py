"""A campaign of many charges: a fifth of the answers is lost, and some outages last longer than Stripe keeps
idempotency keys.

The suite runs a short campaign; FAULTS_LONG=1 runs a long one, and FAULTS_CHARGES sets the number. The campaign acts
like the service: it looks up a charge without an answer, and requests the charge again only if Stripe does not know it
(`flows/charge_card.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections import Counter

import pytest

from cuota.rails.card.breaker import OPEN_SECONDS, Breaker
from cuota.rails.card.protocol import CardAnswer, CardOutcome, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.long_run import LONG, seed_of_campaign
from support.makers import Running
from support.rails.processor import Bench
from support.rails.promises import bench
from support.stripe.faults import Fault
from support.stripe.processor import StripeProcessor
from support.stripe.stand_in import StandIn

# A long run exceeds the time after which pytest reports a hanging test, so run it with -o faulthandler_timeout=0.
CHARGES = int(os.environ.get("FAULTS_CHARGES") or (10_000 if LONG else 150))
CONSUMERS = CHARGES // 10
AT_ONCE = 16
LOST = 0.2
OUTAGE_HOURS = 31.0
MOST_TRIES = 200


class Campaign:
    """Makes charges and look-ups, and the faults on Stripe's side."""

    def __init__(self, processor: StripeProcessor, seed: int) -> None:
        self.processor = processor
        self.rails = CardRails(processor.rail)
        # Each look-up advances the circuit breaker's clock, because a worker looks up an open charge only after some
        # time.
        self.seconds = 0.0
        self.rails.breakers[processor.rail.name] = Breaker(lambda: self.seconds)
        self.random = random.Random(seed)
        self.counted: Counter[str] = Counter()

    def fault(self, method: str) -> Fault:
        """Lose a fifth of the answers: half of them before the request acted, half after. Some requests arrive twice."""
        drawn = self.random.random()
        found: Fault = None
        if drawn < LOST / 2:
            found = "request"
        elif drawn < LOST:
            found = "answer"
        elif drawn < LOST + 0.02:
            found = "twice"
        self.counted[f"{found} {method}"] += 1
        return found

    async def one(self, asked: ChargeRequest) -> CardAnswer:
        """Charge as the service does, until there is an answer. After every eighth lost answer comes a long outage."""
        answer = await self._ask(asked)
        for _ in range(MOST_TRIES):
            if answer is not None:
                return answer
            self.counted["no answer"] += 1
            self.seconds += OPEN_SECONDS
            if self.counted["no answer"] % 8 == 0:
                self.processor.stand_in.keys.hours += OUTAGE_HOURS
                self.counted["outage"] += 1
            with contextlib.suppress(RailUnavailable):
                answer = await self.rails.find_charge(asked)
                self.counted["found" if answer else "not there"] += 1
                if answer is None:
                    answer = await self._ask(asked)
        raise AssertionError("no answer after many attempts")

    async def _ask(self, asked: ChargeRequest) -> CardAnswer | None:
        try:
            return await self.rails.charge(asked)
        except RailUnavailable:
            self.counted["lost"] += 1
            return None


async def some_cards(processor: StripeProcessor) -> list[Bench]:
    """Enter a card for each consumer, a few at the same time."""
    few = asyncio.Semaphore(AT_ONCE)

    async def one() -> Bench:
        async with few:
            return await bench(processor, "pays")

    return await asyncio.gather(*(one() for _ in range(CONSUMERS)))


async def a_worker(
    campaign: Campaign, waiting: list[ChargeRequest]
) -> list[tuple[ChargeRequest, CardAnswer]]:
    ended = []
    while waiting:
        asked = waiting.pop()
        ended.append((asked, await campaign.one(asked)))
    return ended


async def test_no_charge_happens_twice_and_none_is_lost(
    service: Running, stand_in: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "cuota.rails")
    seed = seed_of_campaign()
    processor = StripeProcessor(service.context.pool, stand_in)
    campaign = Campaign(processor, seed)
    cards = await some_cards(processor)
    declining = await bench(processor, "no_funds")
    charges = [card.charge(100 + number) for number, card in enumerate(cards * 10)]
    refused = [declining.charge() for _ in range(CHARGES // 50)]
    waiting = [*charges, *refused]
    campaign.random.shuffle(waiting)
    with stand_in.faults.planned(campaign.fault):
        done = await asyncio.gather(*(a_worker(campaign, waiting) for _ in range(AT_ONCE)))
    ended = {asked.key: answer for worker in done for asked, answer in worker}
    print(dict(campaign.counted))
    for asked in charges:
        assert ended[asked.key].approved
        assert await processor.books(asked) == (asked.amount, 0), f"FAULTS_SEED={seed}"
    for asked in refused:
        assert (ended[asked.key].outcome, ended[asked.key].reason) == (
            CardOutcome.DECLINED,
            "insufficient_funds",
        )
        assert await processor.books(asked) == (0, 0), f"FAULTS_SEED={seed}"
    # The campaign proves something only if requests and answers were lost, and if keys expired before a look-up.
    for what in ("request POST", "answer POST", "outage", "found", "not there"):
        assert campaign.counted[what], f"nothing of this kind happened: {what} (FAULTS_SEED={seed})"
    await processor.close()
