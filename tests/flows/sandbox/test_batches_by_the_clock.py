"""While the sandbox's clock moves, each batch closes at its own cutoff, and not all of them at the end."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from cuota.core.sandbox import SCHEDULED
from cuota.db.sandbox.clock import WAITING
from cuota.db.verify.recalculate import verify
from support.time.sandbox import Sandbox

PAYOUTS = "SELECT * FROM payouts WHERE merchant_id = $1 ORDER BY number"
TERMS = """INSERT INTO merchant_terms VALUES ($1, 1, now() - interval '1 hour', 0, 0, 'kept', 'daily', 0, 1000, 7,
    'America/New_York', '17:00', now())"""


async def test_each_days_batch_closes_at_its_own_cutoff(sandbox: Sandbox) -> None:
    merchant = sandbox.merchant.merchant_id
    order = await sandbox.merchant.approved("500.00")
    for amount in ("10.00", "20.00", "30.00"):
        assert (await sandbox.merchant.move(order, "capture", amount)).status_code == 200
        await sandbox.advance("1d")
    found = await sandbox.fetch(PAYOUTS, merchant)
    assert [row["amount"] for row in found] == [1000, 2000, 3000]
    assert all(row["closed_at"] == row["cutoff"] for row in found)
    for row, later in pairwise(found):
        assert later["cutoff"] - row["cutoff"] == timedelta(days=1)
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_during_one_long_advance_a_reserve_is_paid_on_its_day(sandbox: Sandbox) -> None:
    merchant = sandbox.merchant.merchant_id
    await sandbox.fetch(TERMS, merchant)
    order = await sandbox.merchant.approved("500.00")
    assert (await sandbox.merchant.move(order, "capture", "100.00")).status_code == 200
    moved = await sandbox.advance("30d")
    found = await sandbox.fetch(PAYOUTS, merchant)
    assert [row["amount"] for row in found] == [9000, 1000]
    assert found[1]["cutoff"] - found[0]["cutoff"] == timedelta(days=7)
    assert all(row["closed_at"] == row["cutoff"] for row in found)
    assert moved.done.paid["payout created"] == 2
    held = await sandbox.fetch(
        "SELECT close_at, open_net, reserved FROM settlements WHERE merchant_id = $1", merchant
    )
    assert [tuple(row.values()) for row in held] == [(None, 0, 0)]
    assert (await verify(sandbox.context.pool)).disagreements == []


def test_everything_that_waits_for_the_clock_is_named_in_the_output_of_cuota_time() -> None:
    assert {table for table, _, _ in WAITING} == set(SCHEDULED)
