"""All machines have the database's time: a machine whose own clock is wrong does nothing early, late or twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import RFC_4122, UUID, uuid4

import pytest

from cuota.core.sandbox import CODE
from cuota.db import server_time
from cuota.flows.checkout.identify_consumer import check_code, send_code
from cuota.flows.checkout.take_step import load, open_checkout, propose
from cuota.flows.context import utc_now
from cuota.flows.database_clock import DatabaseClock
from cuota.web.idempotent import _claim
from cuota.work.due_orders import settle_due_orders
from cuota.work.tidy import tidy
from support.core.values import PROFILE
from support.makers import Running, read_checkout
from support.time.machine import set_clock
from support.time.sandbox import Sandbox

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


async def agrees(clock: DatabaseClock, service: Running) -> bool:
    """Return whether the clock shows the database's time: between two readings of it, or less than a minute before."""
    before = await server_time.read(service.context.pool)
    at = clock.now()
    return before - timedelta(minutes=1) <= at <= await server_time.read(service.context.pool)


async def test_a_machine_whose_clock_is_a_day_ahead_charges_no_card_early(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await sandbox.merchant.approved()
    assert (await sandbox.merchant.move(order, "capture", "100.00")).status_code == 200
    found = await sandbox.fetch(
        "SELECT charge_at FROM installments WHERE order_id = $1 AND number = 2", order["orderId"]
    )
    await sandbox.advance((found[0]["charge_at"] - HOUR).isoformat())
    set_clock(monkeypatch, DAY)
    assert utc_now() > datetime.now(UTC) + DAY - HOUR
    await settle_due_orders(sandbox.context)
    states = await sandbox.fetch(
        "SELECT number, charge_id FROM installments WHERE order_id = $1 ORDER BY number", order["orderId"]
    )
    assert [row["number"] for row in states if row["charge_id"]] == [1]


async def test_a_code_that_another_machine_sent_is_right_although_the_clocks_of_the_machines_differ(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant_id, order = sandbox.merchant.merchant_id, await sandbox.merchant.create()
    opened = await open_checkout(sandbox.context, merchant_id, UUID(order["token"]))
    assert opened is not None
    set_clock(monkeypatch, -HOUR)
    await send_code(sandbox.context, await read_checkout(sandbox.context, merchant_id, *opened), "2125550142")
    set_clock(monkeypatch, timedelta(0))
    assert await check_code(sandbox.context, await read_checkout(sandbox.context, merchant_id, *opened), CODE)


@pytest.mark.parametrize("ahead", [2 * DAY, -2 * DAY])
async def test_a_checkout_that_began_on_another_machine_continues_although_the_clocks_of_the_machines_differ(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    merchant_id, order = sandbox.merchant.merchant_id, await sandbox.merchant.create()
    set_clock(monkeypatch, min(ahead, timedelta(0)))
    opened = await open_checkout(sandbox.context, merchant_id, UUID(order["token"]))
    assert opened is not None
    set_clock(monkeypatch, max(ahead, timedelta(0)))
    assert await load(sandbox.context, merchant_id, *opened) is not None


async def test_a_machine_whose_clock_is_ahead_writes_no_agreement_that_the_previous_release_cannot_read(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = replace(
        sandbox.context, agreement_values_from=await server_time.read(sandbox.context.pool) + HOUR
    )
    order = await sandbox.merchant.create()
    opened = await open_checkout(context, sandbox.merchant.merchant_id, UUID(order["token"]))
    assert opened is not None
    checkout = await read_checkout(context, sandbox.merchant.merchant_id, *opened)
    set_clock(monkeypatch, DAY)
    terms = propose(context, checkout, PROFILE)
    assert terms.stored == terms.agreement.text


async def test_a_machine_whose_clock_is_ahead_does_not_take_over_a_request_in_progress(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = (sandbox.merchant.merchant_id, "key-1", bytes(32))
    assert await _claim(sandbox.context, *claimed, uuid4())
    set_clock(monkeypatch, DAY)
    assert not await _claim(sandbox.context, *claimed, uuid4())
    await tidy(sandbox.context)
    assert not await _claim(sandbox.context, *claimed, uuid4())


@pytest.mark.parametrize("ahead", [DAY, -DAY, timedelta(minutes=-10)])
async def test_the_service_s_clock_is_the_database_s_clock(
    service: Running, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    set_clock(monkeypatch, ahead)
    clock = DatabaseClock()
    await clock.refresh(service.context.pool)
    assert await agrees(clock, service)


async def test_a_new_id_has_the_database_s_time(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuota.flows.context.time", SimpleNamespace(time_ns=lambda: 0))
    clock = DatabaseClock()
    await clock.refresh(service.context.pool)
    ids = [clock.new_id() for _ in range(100)]
    made_at = datetime.fromtimestamp((ids[0].int >> 80) / 1000, UTC)
    assert abs(made_at - await server_time.read(service.context.pool)) < timedelta(minutes=1)
    assert sorted(each.int >> 76 for each in ids) == [each.int >> 76 for each in ids]
    assert {(each.version, each.variant) for each in ids} == {(7, RFC_4122)}


async def test_a_clock_that_is_set_while_the_service_runs_changes_nothing(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = DatabaseClock()
    await clock.refresh(service.context.pool)
    for ahead in (HOUR, -HOUR):
        set_clock(monkeypatch, ahead)
        assert await agrees(clock, service)
        await clock.refresh(service.context.pool)
        assert await agrees(clock, service)


async def test_a_machine_that_slept_has_the_right_time_after_the_next_reading(service: Running) -> None:
    slept = 0.0
    clock = DatabaseClock(lambda: datetime.now(UTC).timestamp() - slept)
    await clock.refresh(service.context.pool)
    slept = 3600.0
    assert clock.now() < utc_now() - HOUR + timedelta(minutes=1)
    await clock.refresh(service.context.pool)
    assert await agrees(clock, service)


async def test_between_the_readings_the_clock_never_goes_back(service: Running) -> None:
    clock = DatabaseClock()
    await clock.refresh(service.context.pool)
    seen = [clock.now()]
    for _ in range(200):
        await clock.refresh(service.context.pool)
        seen.append(clock.now())
    assert seen == sorted(seen)
