"""The job deletes all expired answers to an Idempotency-Key, and no others."""

from __future__ import annotations

from cuota.db.order import idempotency
from cuota.work.tidy import tidy
from support.own_service import Own


async def test_the_job_runs_again_without_a_pause_until_no_expired_answer_is_left(own: Own) -> None:
    async with own.owner() as owner:
        await owner.execute(
            "INSERT INTO idempotency_keys SELECT $1, 'k' || n, '', gen_random_uuid(), now(), 200, '', "
            "now() - interval '25 hours' * (n <= 2500)::int FROM generate_series(1, 2510) n",
            own.merchant.merchant_id,
        )
        # The worker runs a job again immediately if the job returned a number above zero.
        rounds = [await tidy(own.context) for _ in range(3)]
        left = await owner.fetchval("SELECT count(*) FROM idempotency_keys")
    assert rounds == [idempotency.FORGOTTEN_AT_ONCE, idempotency.FORGOTTEN_AT_ONCE, 0]
    assert left == 10
