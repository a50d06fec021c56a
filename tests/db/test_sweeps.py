"""Old rows are deleted in batches, and what fails for one merchant or one table does not keep the old rows of the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.db.old_rows import AT_ONCE
from cuota.flows.context import Context, utc_now
from cuota.work.retention import keep_terms
from cuota.work.tidy import tidy
from support.db.failing import failing
from support.own_service import Own

LONG_AGO = timedelta(days=3650)
FEW = 10
ROWS = {
    "checkout_sessions": "(merchant_id, order_id, session_hash, created_at) SELECT $1, gen_random_uuid(), '', $2",
    "signals": "(merchant_id, order_id, kind, value_hash, at) SELECT $1, gen_random_uuid(), 'device', '', $2",
    "messages": """(merchant_id, order_id, message_id, kind, installment, amount, day, state, settled_at, created_at)
        SELECT $1, gen_random_uuid(), gen_random_uuid(), 'payment_received', 1, 1, $2::date, 'sent', $2, $2""",
}
KEY = "(merchant_id, key, request_hash, lease, lease_ends_at, created_at) SELECT $1, 'old', '', gen_random_uuid(), $2, $2"


@pytest.fixture(autouse=True)
def expected_log(caplog: pytest.LogCaptureFixture) -> None:
    """What fails is logged."""
    caplog.set_level("CRITICAL", "cuota.work")


async def add(own: Own, table: str, merchant_id: UUID, number: int) -> None:
    async with own.owner() as owner:
        sql = f"INSERT INTO {table} {ROWS[table]} FROM generate_series(1, $3::integer)"
        await owner.execute(sql, merchant_id, utc_now() - LONG_AGO, number)


async def left(own: Own, table: str) -> int:
    async with own.owner() as owner:
        return int(await owner.fetchval(f"SELECT count(*) FROM {table}"))


@pytest.mark.parametrize("table", ["checkout_sessions", "signals"])
async def test_a_run_deletes_a_batch_of_old_rows_and_runs_again_until_none_is_left(
    own: Own, table: str
) -> None:
    await add(own, table, own.merchant.merchant_id, AT_ONCE + FEW)
    assert await tidy(own.context) == AT_ONCE
    assert await left(own, table) == FEW
    assert await tidy(own.context) == 0
    assert await left(own, table) == 0


# Which merchant's rows are deleted first is not defined, so each of them fails once.
@pytest.mark.parametrize("fails", [0, 1])
@pytest.mark.parametrize(("table", "job"), [("checkout_sessions", tidy), ("messages", keep_terms)])
async def test_old_rows_of_a_merchant_are_deleted_although_those_of_another_cannot_be(
    own: Own, table: str, job: Callable[[Context], Awaitable[int]], fails: int
) -> None:
    both = own.merchant, own.auto_merchant
    for shop in both:
        await shop.create()
        await add(own, table, shop.merchant_id, FEW)
    async with failing(own, table, "DELETE", f"OLD.merchant_id = '{both[fails].merchant_id}'"):
        await job(own.context)
    assert await left(own, table) == FEW


async def test_old_rows_of_a_table_are_deleted_although_those_of_another_table_cannot_be(own: Own) -> None:
    merchant = own.merchant.merchant_id
    async with own.owner() as owner:
        await owner.execute("DELETE FROM idempotency_keys")
        await owner.execute(f"INSERT INTO idempotency_keys {KEY}", merchant, utc_now() - LONG_AGO)
    await add(own, "signals", merchant, FEW)
    async with failing(own, "idempotency_keys", "DELETE"):
        await tidy(own.context)
    assert (await left(own, "idempotency_keys"), await left(own, "signals")) == (1, 0)


async def test_old_messages_are_deleted_although_the_retention_of_consumers_fails(own: Own) -> None:
    await own.merchant.create()
    await add(own, "messages", own.merchant.merchant_id, FEW)
    async with failing(own, "retention", "INSERT"):
        await keep_terms(own.context)
    assert await left(own, "messages") == 0
