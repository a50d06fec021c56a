"""The clock moves forward beside a running service, and everything happens at its own time."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from cuota.core.instant import BadInstant, timestamp
from cuota.core.webhook.delivery import TIMETABLE
from cuota.db.verify.recalculate import verify
from cuota.flows.sandbox.move_time import CannotMoveTime
from support.time.receiver import callback, receiving
from support.time.sandbox import Sandbox
from support.waiting import until

HOUR = timedelta(hours=1)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_an_open_order_is_abandoned_at_exactly_its_expiry(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.create()
    record = await sandbox.merchant.read(order)
    moved = await sandbox.advance("14d")
    events = await sandbox.events(order)
    assert [type_ for type_, _ in events] == ["order.created", "order.abandoned"]
    assert timestamp(events[1][1]) == record["expiryDateTime"] == timestamp(instant(record["expiryDateTime"]))
    assert (await sandbox.merchant.read(order))["orderStatus"] == "Abandoned"
    assert moved.after == moved.before + timedelta(days=14)
    assert moved.done.events == {"order.abandoned": 1}
    assert timedelta(0) <= await sandbox.now() - moved.after < HOUR


async def test_work_that_is_due_a_millisecond_after_the_target_is_not_done(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.create()
    expiry = instant((await sandbox.merchant.read(order))["expiryDateTime"])
    just_before = expiry - timedelta(minutes=1)
    moved = await sandbox.advance(timestamp(just_before))
    assert moved.after == just_before
    assert (await sandbox.merchant.read(order))["orderStatus"] == "Created"


async def test_an_authorization_s_warnings_and_end_happen_at_their_times_in_order(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.approved()
    ends = (
        await sandbox.fetch(
            "SELECT authorization_expires_at AS at FROM orders WHERE order_id = $1", order["orderId"]
        )
    )[0]["at"]
    await sandbox.advance("60d")
    assert (await sandbox.events(order))[2:] == [
        ("authorization.expiring", ends - 72 * HOUR),
        ("authorization.expiring", ends - 24 * HOUR),
        ("authorization.expired", ends),
    ]
    assert [at for at, _ in sandbox.told] == sorted(at for at, _ in sandbox.told)
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_a_plan_s_reminders_and_charges_happen_at_their_times(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.approved()
    assert (await sandbox.merchant.move(order, "capture", "100.00")).status_code == 200
    planned = await sandbox.fetch(
        "SELECT number, charge_at FROM installments WHERE order_id = $1 AND number > 1 ORDER BY number",
        order["orderId"],
    )
    await sandbox.advance("60d")
    charged = await sandbox.fetch(
        "SELECT installment, created_at, settled_at, state FROM charges WHERE order_id = $1 AND installment > 1"
        " ORDER BY installment",
        order["orderId"],
    )
    assert [(row["installment"], row["created_at"]) for row in charged] == [
        (row["number"], row["charge_at"]) for row in planned
    ]
    assert all(row["settled_at"] == row["created_at"] and row["state"] == "succeeded" for row in charged)
    told = await sandbox.fetch(
        "SELECT kind, created_at, settled_at, state FROM messages WHERE order_id = $1 ORDER BY created_at",
        order["orderId"],
    )
    assert [row["kind"] for row in told[1:]] == [
        *(["reminder", "reminder", "payment_received"] * 2), "reminder", "reminder", "plan_paid_off",
    ]  # fmt: skip
    assert {row["state"] for row in told} == {"sent"}
    # A payment is charged at midnight, and its message is sent at nine.
    waits = {(row["kind"], (row["settled_at"] - row["created_at"]) / HOUR) for row in told[1:]}
    assert waits == {("reminder", 0), ("payment_received", 9), ("plan_paid_off", 9)}
    report = await verify(sandbox.context.pool)
    assert report.orders == 1
    assert report.disagreements == []


async def test_a_webhook_is_retried_by_its_schedule_and_then_parked(sandbox: Sandbox) -> None:
    async def refuse(event: dict[str, Any]) -> int:
        del event
        return 500

    async with receiving(refuse) as receiver:
        order = await sandbox.merchant.create(**callback(receiver.url))
        await sandbox.advance("5d")
    tried = await sandbox.fetch(
        "SELECT at FROM delivery_attempts WHERE order_id = $1 AND sequence = 1 ORDER BY number",
        order["orderId"],
    )
    gaps = [(later["at"] - earlier["at"]).total_seconds() for earlier, later in pairwise(tried)]
    assert len(gaps) == len(TIMETABLE) - 1
    for gap, planned in zip(gaps[1:], TIMETABLE[2:], strict=True):
        assert 0.9 * planned <= gap <= 1.1 * planned
    states = await sandbox.fetch("SELECT state FROM deliveries WHERE order_id = $1", order["orderId"])
    assert [row["state"] for row in states] == ["parked", "parked"]


async def test_a_receiver_s_call_to_the_api_happens_at_the_time_of_its_event(sandbox: Sandbox) -> None:
    again: list[dict[str, Any]] = []

    async def order_once_more(event: dict[str, Any]) -> int:
        if event["type"] == "order.abandoned" and len(again) < 3:
            again.append(await sandbox.merchant.create(**callback(receiver.url)))
        return 200

    async with receiving(order_once_more) as receiver:
        first = await sandbox.merchant.create(**callback(receiver.url))
        await sandbox.advance("2d")
        orders = [first, *again]
        assert len(orders) == 4
        for before, after in pairwise(orders):
            left, (created, _) = (await sandbox.events(before))[1], await sandbox.events(after)
            assert left[0] == "order.abandoned"
            assert created == ("order.created", left[1])
        assert receiver.types == ["order.created", "order.abandoned"] * 4


async def test_the_body_s_timestamp_is_simulated_and_the_signature_s_is_the_time_of_sending(
    sandbox: Sandbox,
) -> None:
    async with receiving() as receiver:
        order = await sandbox.merchant.create(**callback(receiver.url))
        await sandbox.advance("30d")
    abandoned = (await sandbox.events(order))[1][1]
    headers, event = receiver.got[-1]
    assert event["timestamp"] == timestamp(abandoned)
    assert abs(int(headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 300


async def test_of_two_advances_at_once_the_second_is_refused_and_told_why(sandbox: Sandbox) -> None:
    refused = asyncio.Event()

    async def slowly(event: dict[str, Any]) -> int:
        if event["type"] == "order.abandoned":
            await refused.wait()
        return 200

    async with receiving(slowly) as receiver:
        await sandbox.merchant.create(**callback(receiver.url))
        first = asyncio.create_task(sandbox.advance("2h"))
        await until(lambda: "order.abandoned" in receiver.types)
        with pytest.raises(CannotMoveTime, match="Another"):
            await sandbox.advance("1d")
        refused.set()
        moved = await first
    assert moved.after == moved.before + 2 * HOUR
    assert (await sandbox.advance("1h")).after >= moved.after + HOUR


async def test_an_interrupt_stops_between_two_instants_and_the_next_advance_continues(
    sandbox: Sandbox,
) -> None:
    order = await sandbox.merchant.approved()
    ends = (await sandbox.fetch("SELECT authorization_expires_at AS at FROM orders"))[0]["at"]

    class Interrupting(list):  # type: ignore[type-arg]
        def append(self, item: Any) -> None:
            super().append(item)
            if "authorization.expiring" in item[1].events:
                os.kill(os.getpid(), signal.SIGINT)

    sandbox.told = Interrupting()
    moved = await sandbox.advance("60d")
    assert moved.stopped
    # If a signal arrives after the next instant has begun, that instant is finished. It is not printed if nothing
    # happened at it.
    assert moved.after >= sandbox.told[-1][0]
    assert ends - 72 * HOUR <= moved.after < ends
    assert timedelta(0) <= await sandbox.now() - moved.after < HOUR
    sandbox.told = []
    assert not (await sandbox.advance("60d")).stopped
    expected = [ends - 72 * HOUR, ends - 24 * HOUR, ends]
    assert [at for _, at in (await sandbox.events(order))[2:]] == expected


async def test_after_an_interrupt_the_advance_sends_no_more_webhooks_and_the_service_sends_the_rest(
    sandbox: Sandbox,
) -> None:
    async def interrupt(event: dict[str, Any]) -> int:
        if event["type"] == "order.abandoned":
            os.kill(os.getpid(), signal.SIGINT)
            # The event of this order is due at the same instant.
            await sandbox.merchant.create(**callback(receiver.url))
        return 200

    async with receiving(interrupt) as receiver:
        await sandbox.merchant.create(**callback(receiver.url))
        await until(lambda: receiver.types == ["order.created"])
        moved = await sandbox.advance("60d")
        assert moved.stopped
        assert sandbox.told[-1][1].webhooks["attempts"] == 1
        await until(lambda: receiver.types == ["order.created", "order.abandoned", "order.created"])


async def test_the_clock_cannot_be_moved_back_or_by_zero(sandbox: Sandbox) -> None:
    before = await sandbox.now()
    for asked in ("2020-01-01", "0d", "2020-01-01T00:00Z"):
        with pytest.raises(BadInstant, match="not later than the service's clock"):
            await sandbox.advance(asked)
    with pytest.raises(BadInstant, match="5 years"):
        await sandbox.advance("300w")
    assert timedelta(0) <= await sandbox.now() - before < HOUR


async def test_background_work_continues_after_an_advance(sandbox: Sandbox) -> None:
    await sandbox.advance("1d")
    async with receiving() as receiver:
        await sandbox.merchant.create(**callback(receiver.url))
        await until(lambda: receiver.got)
    sent = instant(receiver.got[0][1]["timestamp"])
    assert sent - datetime.now(UTC) > 23 * HOUR


async def test_a_receiver_that_creates_an_order_for_each_event_delays_an_advance_only_for_a_limited_time(
    sandbox: Sandbox,
) -> None:
    made: list[dict[str, Any]] = []

    async def order_again(event: dict[str, Any]) -> int:
        if event["type"] == "order.created" and len(made) < 30:
            made.append(await sandbox.merchant.create(**callback(receiver.url)))
        return 200

    async with receiving(order_again) as receiver:
        await sandbox.merchant.create(**callback(receiver.url))
        moved = await sandbox.advance("1h")
        assert moved.after == moved.before + HOUR
        assert not moved.stopped
        await until(lambda: len(made) == 30, 60)
