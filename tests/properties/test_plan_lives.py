"""The random lives of plans: whatever happens, everybody is told the same amounts and days, and no cent is missing.

Each life is driven through the API, the pages of the consumer and the clock, against a running service. `make faults` runs many lives.
To repeat one: `FAULTS_LONG=1 FAULTS_SEED=... pytest tests/properties/test_plan_lives.py`.
"""

from __future__ import annotations

from support.long_run import LONG, seed_of_campaign
from support.plan_life.life import begun
from support.plan_life.steps import STEPS
from support.plan_life.views import disagreements, told_by_webhooks
from support.time.sandbox import Sandbox

LIVES, LENGTH = (30, 20) if LONG else (2, 8)


async def live(sandbox: Sandbox, seed: int) -> int:
    """Let one plan live, and compare after each step. Return the number of steps: 0 if the first payment failed."""
    async with begun(sandbox, seed) as life:
        if life is None:
            return 0
        assert await disagreements(life) == [], "\n".join(life.story)
        for _ in range(LENGTH):
            step = life.dice.choice(STEPS)
            await step(life)
            assert await disagreements(life) == [], "\n".join([*life.story, step.__name__])
        assert await told_by_webhooks(life) == [], "\n".join(life.story)
        return LENGTH


async def test_whatever_happens_to_a_plan_everybody_is_told_the_same(sandbox: Sandbox) -> None:
    first = seed_of_campaign()
    lived = [await live(sandbox, seed) for seed in range(first, first + LIVES)]
    assert sum(lived) > 0
