"""The job that deletes old rows never waits for another transaction, so that no request can wait for the job in a circle."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

from cuota.db.checkout import checkouts, codes, remembered
from cuota.db.checkout.remembered import Remembered
from cuota.db.desk import passkeys, sessions
from cuota.db.merchant import credentials
from cuota.db.operator import operator_passkeys, operator_sessions
from cuota.db.plan import accounts, asks
from cuota.db.pool import Pool
from cuota.flows.context import utc_now
from support.db.locks import holder
from support.own_service import Own

LONG_AGO = timedelta(days=3650)

# An old row of each table: the values of its columns, where $1 is a merchant and $2 is long ago.
OLD = {
    "consumer_asks": "'phone', '\\x01', ARRAY[$2::timestamptz], '{}', $2",
    "account_sessions": "'\\x01', NULL, NULL, NULL, 0, 0, NULL, $2, $2",
    "codes_sent": "'\\x01', $2, 1, 5",
    "token_failures": "'\\x01', $2, 1",
    "checkout_sessions": "$1, gen_random_uuid(), '\\x01', NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, $2",
    "desk_sessions": "$1, '\\x01', gen_random_uuid(), gen_random_uuid(), $2, $2, $2, NULL, false, NULL, '', ''",
    "desk_links": "$1, gen_random_uuid(), gen_random_uuid(), $2, $2, NULL, 0, false, NULL",
    "desk_challenges": "'\\x01', '\\x01', 'sign-in', '', $2, $2, NULL",
    "operator_sessions": "'\\x01', gen_random_uuid(), (SELECT person_id FROM operator_people), $2, $2, $2, NULL, false, NULL, '', ''",
    "operator_links": "gen_random_uuid(), (SELECT person_id FROM operator_people), $2, $2, NULL, 0, false, NULL",
    "operator_challenges": "'\\x01', '\\x01', 'sign-in', '', $2, $2, NULL",
}
PERSON = "INSERT INTO operator_people (person_id, email, name, role, invited_at) VALUES (gen_random_uuid(), 'a@b', 'A', 'owner', now())"


async def forget_all(pool: Pool) -> None:
    """Delete all old rows, as the job does."""
    now = utc_now()
    await asks.forget(pool, now)
    await accounts.forget(pool, now)
    await codes.forget(pool, now)
    await credentials.forget_failures(pool, now)
    await checkouts.forget(pool, now)
    for table in (sessions, operator_sessions, passkeys, operator_passkeys):
        await table.forget(pool, now)


async def counts(own: Own) -> dict[str, int]:
    async with own.owner() as owner:
        return {table: await owner.fetchval(f"SELECT count(*) FROM {table}") for table in OLD}


async def test_a_sweep_leaves_a_locked_row_to_the_next_run_and_does_not_wait_for_it(own: Own) -> None:
    async with own.owner() as owner:
        await owner.execute(PERSON)
        for table, values in OLD.items():
            given: tuple[Any, ...] = (own.merchant.merchant_id, utc_now() - LONG_AGO)
            for number in range(2):
                row = values.replace("\\x01", f"\\x0{number}")
                await owner.execute(
                    f"WITH given AS (SELECT $1::uuid, $2::timestamptz) INSERT INTO {table} SELECT {row} FROM given",
                    *given,
                )
    assert set((await counts(own)).values()) == {2}
    async with holder(own.where) as other:
        for table in OLD:
            await other.run(f"SELECT FROM {table} LIMIT 1 FOR UPDATE")
        await forget_all(own.context.pool)
        assert await counts(own) == dict.fromkeys(OLD, 1)
    await forget_all(own.context.pool)
    assert set((await counts(own)).values()) == {0}


async def test_a_sweep_of_remembered_browsers_holds_no_row_while_it_waits_for_another(own: Own) -> None:
    now, browser = utc_now(), Remembered(uuid4(), own.merchant.merchant_id, uuid4())
    for number in range(3):
        ended = now - LONG_AGO + timedelta(days=number)
        await remembered.remember(own.context.pool, bytes([number]), browser, ended, ended)
    async with holder(own.where) as other:
        await other.run("SELECT FROM remembered_browsers WHERE token_hash = $1 FOR UPDATE", b"\1")
        sweeping = asyncio.ensure_future(remembered.forget(own.context.pool, now))
        await other.until_waits(sweeping)
        await other.run("SELECT FROM remembered_browsers FOR UPDATE NOWAIT")
    await sweeping
    assert await own.context.pool.fetchrow("SELECT 1 FROM remembered_browsers") is None
