"""Reviews go by the sandbox's clock: they run out at their instant, and a rewind brings them back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from cuota.core.sandbox import REFERRED_SURNAME
from cuota.db.verify.recalculate import verify
from cuota.flows.sandbox.fork_sandbox import fork, rewind
from support.makers import PROFILE, complete
from support.phones import phone_number
from support.time.sandbox import Sandbox


async def waits(sandbox: Sandbox) -> tuple[dict[str, Any], str]:
    order, phone = await sandbox.merchant.create(), phone_number()
    await confirmed(sandbox, order, phone)
    assert await state(sandbox, order) == "waiting"
    return order, phone


async def confirmed(sandbox: Sandbox, order: dict[str, Any], phone: str) -> str:
    person = replace(PROFILE, surname=REFERRED_SURNAME)
    merchant = sandbox.merchant
    done = await complete(merchant.service, merchant.merchant_id, order, profile=person, phone=phone)
    return done.status.value


async def state(sandbox: Sandbox, order: dict[str, Any]) -> str:
    [row] = await sandbox.fetch("SELECT state FROM reviews WHERE order_id = $1", order["orderId"])
    return str(row["state"])


async def test_what_nobody_answers_is_declined_at_exactly_ten_minutes_before_the_checkout_ends(
    sandbox: Sandbox,
) -> None:
    order, _ = await waits(sandbox)
    [row] = await sandbox.fetch("SELECT expires_at FROM orders WHERE order_id = $1", order["orderId"])
    await sandbox.advance("3h")
    assert (await sandbox.events(order))[1:] == [
        ("order.declined", row["expires_at"] - timedelta(minutes=10))
    ]
    assert await state(sandbox, order) == "unanswered"
    kinds = await sandbox.fetch(
        "SELECT kind FROM messages WHERE order_id = $1 ORDER BY kind", order["orderId"]
    )
    assert [each["kind"] for each in kinds] == ["declined", "review_declined"]
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_a_rewind_brings_back_an_order_that_waited(sandbox: Sandbox) -> None:
    order, phone = await waits(sandbox)
    await fork(sandbox.where, "waiting")
    await sandbox.advance("3h")
    assert await state(sandbox, order) == "unanswered"
    await rewind(sandbox.where, "waiting")
    assert await state(sandbox, order) == "waiting"
    assert (await sandbox.merchant.read(order))["orderStatus"] == "Created"
    await sandbox.fetch("SELECT 1")
    assert (await verify(sandbox.context.pool)).disagreements == []
    del phone
