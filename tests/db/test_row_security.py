"""With row-level security, a statement without a merchant sees no rows of another merchant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota import config
from cuota.db import row_security
from cuota.db.pool import Pool
from cuota.db.row_security import EVERYONE, everyone, narrow
from cuota.flows.checkout.remember_browser import who_is_remembered
from support.db.migrating import migrated
from support.makers import Merchant, checkout
from support.own_service import Own, opened_own
from support.pages.visitor import Visitor
from support.phones import phone_number
from support.sending import deliver
from support.signed import started


@pytest.fixture
async def secured(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """Yield a service on a database with row-level security. Each merchant has an approved and captured order."""
    connection = await asyncpg.connect(**own_database)
    changed = await row_security.turn(connection, on=True)
    assert {"orders", "transfers", "merchants", "credentials", "deliveries", "signals"} <= set(changed)
    await connection.close()
    async with opened_own(settings, own_database) as own:
        for merchant in (own.merchant, own.auto_merchant):
            order = await merchant.approved("100.00")
            await merchant.move(order, "capture", "40.00")
        yield own


@contextmanager
def asking(merchant_id: UUID | None) -> Any:
    with everyone():
        if merchant_id is not None:
            narrow(merchant_id)
        yield


TABLES = ["orders", "order_details", "movements", "plans", "installments", "transfers", "events", "merchants"]


@pytest.mark.parametrize("table", TABLES)
async def test_a_statement_without_its_merchant_reads_and_changes_no_rows_of_another_merchant(
    secured: Own, table: str
) -> None:
    ours, theirs = secured.merchant.merchant_id, secured.auto_merchant.merchant_id
    forgets = f"SELECT DISTINCT merchant_id FROM {table} WHERE $1"
    pool = secured.context.pool
    with asking(None):
        assert {row["merchant_id"] for row in await pool.fetch(forgets, True)} == {ours, theirs}
    for merchant_id in (ours, theirs, ours):
        with asking(merchant_id):
            assert {row["merchant_id"] for row in await pool.fetch(forgets, True)} == {merchant_id}
    with asking(ours):
        assert (
            await pool.execute("UPDATE merchants SET name = name WHERE merchant_id = $1", theirs)
            == "UPDATE 0"
        )
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            await pool.execute(
                "INSERT INTO outbox (merchant_id, order_id, sequence) VALUES ($1, $1, 1)", theirs
            )


async def _rolled_back(pool: Pool) -> None:
    async with pool.session() as session, session.transaction():
        await session.fetch("SELECT $1::int", 1)
        raise ZeroDivisionError


async def test_no_pooled_session_keeps_one_merchant_s_rights_for_the_next_request(secured: Own) -> None:
    """Hundreds of requests of two merchants share few sessions, and a third of the statements fail."""
    pool = secured.context.pool
    ids = [secured.merchant.merchant_id, secured.auto_merchant.merchant_id, None]

    async def ask(number: int) -> None:
        merchant_id = ids[number % 3]
        with asking(merchant_id):
            if number % 5 == 0:
                with pytest.raises(asyncpg.DivisionByZeroError):
                    await pool.fetchrow("SELECT 1 / $1::int", 0)
            if number % 7 == 0:
                with pytest.raises(
                    asyncpg.DataError
                ):  # the driver itself refuses it, before anything is sent
                    await pool.fetchrow("SELECT $1::int", "text")
            if number % 4 == 0:
                with pytest.raises(ZeroDivisionError):
                    await _rolled_back(pool)
            rows = await pool.fetch("SELECT DISTINCT merchant_id FROM orders WHERE $1", True)
            seen = {row["merchant_id"] for row in rows}
            assert seen == ({merchant_id} if merchant_id else set(ids) - {None})

    for start in range(0, 300, 30):
        await asyncio.gather(*(ask(number) for number in range(start, start + 30)))


async def test_setting_the_merchant_needs_no_extra_round_trip(secured: Own) -> None:
    """The driver sends it together with the statement. It has no sync message, so the server does not answer it separately."""
    told = row_security._set(secured.merchant.merchant_id)
    kinds = []
    while told:
        kinds.append(told[:1])
        told = told[1 + int.from_bytes(told[1:5]) :]
    assert kinds == [b"P", b"B", b"E"]
    async with secured.context.pool.session() as session:
        connection = session._con
        with asking(secured.merchant.merchant_id):
            await session.fetch("SELECT $1::int", 1)
        protocol, before = connection._protocol, connection._protocol.queries_count
        with asking(secured.auto_merchant.merchant_id):
            found = await session.fetchval("SELECT current_setting('cuota.merchant') WHERE $1", True)
        assert found == str(secured.auto_merchant.merchant_id)
        with asking(None):
            assert (
                await session.fetchval("SELECT current_setting('cuota.merchant') WHERE $1", True) == EVERYONE
            )
        assert protocol.queries_count - before == 2


async def test_with_row_security_everything_works_and_no_merchant_sees_another_s_rows(secured: Own) -> None:
    ours, other = secured.merchant, secured.auto_merchant
    order = await ours.approved("80.00")
    assert (await ours.move(order, "capture", "50.00")).status_code == 200
    assert (await ours.move(order, "void", "30.00")).status_code == 200
    assert (await ours.move(order, "refund", "10.00")).status_code == 200
    assert (await ours.read(order))["capturedAmount"] == 50
    assert (await other.http.get(f"/order/{order['orderId']}")).status_code == 404
    assert (await ours.http.get("/events")).status_code == 200
    assert (
        await ours.http.post("/webhook-endpoints", json={"url": "http://127.0.0.1:9/h"})
    ).status_code == 200
    made = await started(ours)
    await checkout(secured.service, ours.merchant_id, made)
    await deliver(ours)


async def test_a_browser_is_recognized_at_every_merchant_and_its_replaced_token_is_not_accepted(
    secured: Own,
) -> None:
    """The consumer buys at one shop, then alternates between two shops."""
    shops = (secured.merchant, secured.auto_merchant)
    tokens: list[str] = []
    async with secured.service.client() as http:
        phone, visitor = phone_number(), Visitor(http)
        assert (await visitor.buy(await shops[0].create(), phone=phone)).outcome == "approved"
        for shop in (shops[1], shops[0], shops[1]):
            tokens.append(http.cookies["remembered"])
            order = await shop.create()
            assert "today with Visa •••• 4242" in (await visitor.open(order["redirectUrl"])).text
            assert (await visitor.send("again")).outcome == "approved"
        tokens.append(http.cookies["remembered"])
        with asking(shops[0].merchant_id):
            known = [await who_is_remembered(secured.context, token) is not None for token in tokens]
        assert known == [False, False, False, True]
        await visitor.open((await shops[0].create())["redirectUrl"])
        assert (await visitor.send("forget")).form("phone")
    with asking(None):
        assert await who_is_remembered(secured.context, tokens[-1]) is None


async def test_with_row_security_concurrent_requests_are_still_saved_together(secured: Own) -> None:
    merchants: list[Merchant] = [secured.merchant, secured.auto_merchant]
    made = await asyncio.gather(*(merchants[number % 2].create("10.00") for number in range(40)))
    assert len({each["orderId"] for each in made}) == 40
    for merchant, orders in ((merchants[0], made[::2]), (merchants[1], made[1::2])):
        found = await asyncio.gather(*(merchant.read(each) for each in orders))
        assert all(each["orderStatus"] == "Created" for each in found)


async def test_row_security_is_off_by_default_and_can_be_turned_on_and_off(
    own_database: dict[str, Any],
) -> None:
    connection = await asyncpg.connect(**own_database)
    assert not await row_security.is_on(connection)
    on = await row_security.turn(connection, on=True)
    assert await row_security.is_on(connection)
    assert await row_security.turn(connection, on=True) == []
    assert await row_security.turn(connection, on=False) == on
    assert not await row_security.is_on(connection)
    assert await connection.fetchval("SELECT count(*) FROM pg_policy") == 0
    await connection.close()


async def test_a_new_table_with_merchants_rows_in_a_later_release_is_secured_too(
    own_database: dict[str, Any],
) -> None:
    connection = await asyncpg.connect(**own_database)
    await row_security.turn(connection, on=True)
    await connection.execute("CREATE TABLE later (merchant_id uuid PRIMARY KEY)")
    assert await row_security.turn(connection, on=True) == ["later"]
    await connection.close()


async def test_the_next_start_secures_the_table_of_a_migration_that_was_killed_before_it_could(
    own_database: dict[str, Any],
) -> None:
    connection = await asyncpg.connect(**own_database)
    await row_security.turn(connection, on=True)
    # The migration that adds this table was applied, and its process did not live longer.
    await connection.execute("CREATE TABLE later (merchant_id uuid PRIMARY KEY)")
    assert await migrated(own_database) == []
    assert await row_security.turn(connection, on=True) == []
    await connection.close()


async def test_a_session_without_a_merchant_sees_no_rows(secured: Own) -> None:
    """Such a session belongs to an earlier release, or to another program that uses the service's role."""
    async with secured.owner() as connection:
        await connection.execute("SET ROLE cuota_app")
        assert await connection.fetchval("SELECT count(*) FROM orders") == 0
