"""While an order is decided, a part of the limit is reserved. The reservation counts, it ends, and no crash lets the
limit be exceeded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from cuota import config
from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Final, Status
from cuota.db.risk import reservations
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.checkout.submit_checkout import OTHER_PURCHASE
from cuota.flows.checkout.take_step import Problem
from cuota.flows.privacy.erase_consumer import DECIDING, erase_consumer
from cuota.flows.risk import decide_order
from cuota.flows.risk.settle_reservations import settle_reservations
from support.db.locks import holder
from support.flows.buttons import opened, press
from support.flows.gates import FINISH, HISTORY, RESERVE, SAVE, GatePool, killed, stopped
from support.own_service import Own, opened_own
from support.phones import phone_number


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """A service with the policy of the release."""
    async with opened_own(replace(settings, policy=None), own_database) as opened_under_it:
        yield opened_under_it


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_order, "PATIENCE_SECONDS", 0.1)


def share(own: Own, parts: int) -> str:
    """Return this part of a new consumer's limit."""
    return f"{own.context.policy.exposure.new // parts / 100:.2f}"


async def ask(own: Own, sql: str, *values: object) -> Any:
    async with own.owner() as owner:
        return await owner.fetchval(sql, *values)


async def reserved(own: Own) -> int:
    return int(await ask(own, "SELECT count(*) FROM consumer_reservations"))


async def expired(own: Own) -> None:
    """Let all reservations expire."""
    await ask(own, "UPDATE consumer_reservations SET expires_at = now() - interval '1 second'")


async def outstanding(own: Own) -> list[int]:
    """Return the amount that each decision counted as owed, in the order of the decisions."""
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT inputs FROM decisions ORDER BY decided_at, decision_id")
    return [json.loads(row["inputs"])["history"]["outstanding"] for row in rows]


async def within_the_limit(own: Own) -> None:
    """Return the amount that the consumer really owes, and check that no reservation is left."""
    owes = """SELECT coalesce(sum(amount + fee), 0)::bigint FROM orders WHERE status = 'Approved' OR charging IS NOT NULL"""
    assert await ask(own, owes) <= own.context.policy.exposure.new
    assert await reserved(own) == 0
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_reserved_order_counts_for_other_orders_before_it_is_saved(own: Own) -> None:
    one, two = await opened(own, phone_number(), 2, share(own, 2))
    first, gate = await stopped(own, one, "before", SAVE)
    assert (await press(own.context, two)).status is Status.APPROVED
    assert await outstanding(own) == [one.order.amount]
    gate.go.set()
    assert (await first).status is Status.APPROVED
    await within_the_limit(own)


@pytest.mark.usefixtures("impatient")
async def test_an_order_is_not_declined_because_of_an_order_that_is_still_being_decided(own: Own) -> None:
    one, two = await opened(own, phone_number(), 2, share(own, 1))
    first, gate = await stopped(own, one, "before", SAVE)
    with pytest.raises(Problem) as told:
        await press(own.context, two)
    assert told.value.notice == OTHER_PURCHASE
    assert await outstanding(own) == []
    gate.go.set()
    assert (await first).status is Status.APPROVED
    assert (await press(own.context, two)).status is Status.DECLINED
    assert await outstanding(own) == [0, one.order.amount // 4 * 3]
    await within_the_limit(own)


async def test_an_order_that_waited_is_approved_if_the_other_order_ends_without_an_approval(own: Own) -> None:
    one, two = await opened(own, phone_number(), 2, share(own, 1))
    first, gate = await stopped(own, one, "before", SAVE)
    second = asyncio.create_task(press(own.context, two))
    async with asyncio.timeout(60):
        while await reserved(own) < 2:  # noqa: ASYNC110 - a commit sets no event here
            await asyncio.sleep(0.01)
    await leave_checkout(own.context, one.order.merchant_id, one.order.order_id)
    gate.go.set()
    with pytest.raises(Final):
        await first
    assert (await second).status is Status.APPROVED
    await within_the_limit(own)


STEPS = {
    "before the reservation": ("before", RESERVE, 0, False),
    "after the reservation": ("after", RESERVE, 1, False),
    "after the history was read": ("after", HISTORY, 1, False),
    "before the save": ("before", SAVE, 1, False),
    "after the save": ("after", SAVE, 1, True),
    "before the deletion": ("before", FINISH, 1, True),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("step", STEPS)
async def test_after_a_crash_a_reservation_counts_until_the_job_has_checked_its_order(
    own: Own, step: str
) -> None:
    when, piece, left, begun = STEPS[step]
    one, two = await opened(own, phone_number(), 2, share(own, 1))
    await killed(own, one, when, piece)
    assert await reserved(own) == left
    if left and not begun:
        # The reservation also counts long after it has expired, because only the job ends it.
        await expired(own)
        with pytest.raises(Problem):
            await press(own.context, two)
    await expired(own)
    assert await settle_reservations(own.context) == left
    assert await reserved(own) == 0
    # The order whose charge had begun is in the history. The other order has left nothing.
    ended = await press(own.context, two)
    assert ended.status is (Status.DECLINED if begun else Status.APPROVED)
    await within_the_limit(own)


async def test_a_press_whose_reservation_has_expired_writes_nothing_and_is_decided_again(
    own: Own,
) -> None:
    one, two = await opened(own, phone_number(), 2, share(own, 1))
    first, gate = await stopped(own, one, "before", SAVE)
    await expired(own)
    assert await settle_reservations(own.context) == 1
    assert (await press(own.context, two)).status is Status.APPROVED
    gate.go.set()
    assert (await first).status is Status.DECLINED
    assert gate.saved == [False, True]
    await within_the_limit(own)


async def test_the_job_waits_for_a_save_that_is_in_progress(own: Own) -> None:
    [one] = await opened(own, phone_number(), 1, share(own, 1))
    first, gate = await stopped(own, one, "before", SAVE)
    await expired(own)
    async with holder(own.where) as other:
        # The order's row is busy: both wait for it.
        await other.run("SELECT 1 FROM orders WHERE merchant_id = $1 FOR UPDATE", own.merchant.merchant_id)
        gate.go.set()
        job = asyncio.create_task(settle_reservations(own.context))
        await other.until_waits(job, 2)
    assert (await first).status is Status.APPROVED
    assert await job <= 1
    await within_the_limit(own)


async def test_the_job_does_not_delete_a_reservation_that_was_renewed_meanwhile(own: Own) -> None:
    consumer_id = own.context.vault.consumer_id(phone_number())
    order_id = own.context.new_id()
    ids = consumer_id, own.merchant.merchant_id, order_id
    first = await reservations.reserve(own.context.pool, *ids, 100, None)
    await expired(own)
    [seen] = await reservations.expired(own.context.pool, 10)
    again = await reservations.reserve(own.context.pool, *ids, 100, first.ticket)
    assert again.ticket == first.ticket
    assert not await reservations.finish(own.context.pool, consumer_id, seen.ticket, seen.expires_at)
    assert await reservations.finish(own.context.pool, consumer_id, seen.ticket)
    anew = await reservations.reserve(own.context.pool, *ids, 100, first.ticket)
    assert anew.ticket > first.ticket


async def test_presses_of_one_order_do_not_count_for_each_other_and_count_once_for_other_orders(
    own: Own,
) -> None:
    pool, merchant_id = own.context.pool, own.merchant.merchant_id
    consumer_id = own.context.vault.consumer_id(phone_number())
    one, two = own.context.new_id(), own.context.new_id()
    for _ in range(2):
        assert (await reservations.reserve(pool, consumer_id, merchant_id, one, 100, None)).earlier == {}
    other = await reservations.reserve(pool, consumer_id, merchant_id, two, 70, None)
    assert other.earlier == {one: 100}
    assert (await reservations.reserve(pool, consumer_id, merchant_id, one, 100, None)).earlier == {two: 70}
    stranger = own.context.vault.consumer_id(phone_number())
    assert (await reservations.reserve(pool, stranger, merchant_id, two, 70, None)).earlier == {}


async def test_if_the_save_s_answer_is_lost_the_reservation_stays_until_it_expires(own: Own) -> None:
    [one] = await opened(own, phone_number(), 1, share(own, 1))

    class Lost(GatePool):
        async def _asked(self, sql: str, *values: object) -> Any:
            row = await super()._asked(sql, *values)
            if SAVE in sql and len(self.saved) == 1:
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return row

    pool = Lost(own, "never", SAVE)
    with pytest.raises(Charging):
        await press(replace(own.context, pool=pool), one)
    assert (pool.saved, await reserved(own)) == ([True], 1)
    await expired(own)
    assert await settle_reservations(own.context) == 1
    await within_the_limit(own)


async def test_a_consumer_is_not_erased_while_an_order_is_decided(own: Own) -> None:
    phone = phone_number()
    [one] = await opened(own, phone, 1, share(own, 2))
    first, gate = await stopped(own, one, "before", SAVE)
    erased = await erase_consumer(own.context, phone, dry_run=False)
    assert (erased.done, DECIDING in erased.reasons) == (False, True)
    gate.go.set()
    assert (await first).status is Status.APPROVED
    await within_the_limit(own)


# The statement by which the previous release's save changes the row, copied from that release.
GUARD = """INSERT INTO consumer_exposure AS e (consumer_id, version) VALUES ($1, $2::bigint + 1)
    ON CONFLICT (consumer_id) DO UPDATE SET version = excluded.version WHERE e.version = $2 RETURNING 1"""


async def test_the_previous_release_saves_nothing_between_a_reservation_and_its_end(own: Own) -> None:
    phone = phone_number()
    consumer_id, version = own.context.vault.consumer_id(phone), "SELECT version FROM consumer_exposure"
    [one, two] = await opened(own, phone, 2, share(own, 4))
    assert await ask(own, GUARD, consumer_id, 0) == 1
    first, gate = await stopped(own, one, "before", SAVE)
    # The previous release's first read is outdated. Its next read may lack the order that is about to be saved.
    assert await ask(own, GUARD, consumer_id, 1) is None
    read = await ask(own, version)
    with pytest.raises(asyncpg.LockNotAvailableError):
        await ask(own, GUARD, consumer_id, read)
    gate.go.set()
    await first
    assert await ask(own, GUARD, consumer_id, read) is None
    assert await ask(own, GUARD, consumer_id, await ask(own, version)) == 1
    assert (await press(own.context, two)).status is Status.APPROVED


async def test_verify_names_a_reservation_that_disagrees_with_its_order(own: Own) -> None:
    [one] = await opened(own, phone_number(), 1, share(own, 2))
    await killed(own, one, "after", SAVE)
    assert (await verify(own.context.pool)).disagreements == []
    await ask(own, "UPDATE consumer_reservations SET amount = amount + 1")
    await ask(own, "UPDATE consumer_reservations SET expires_at = expires_at - interval '2 hours'")
    await ask(
        own,
        "INSERT INTO consumer_reservations SELECT consumer_id, 99, merchant_id, gen_random_uuid(), 5, now() FROM consumer_reservations",
    )
    found = [(each.row.split()[-1], each.problem) for each in (await verify(own.context.pool)).disagreements]
    amount = one.order.amount
    assert [number for number, _ in found] == ["1", "1", "99"]
    assert found[0][1] == f"reserves {amount + 1}, the order is for {amount}"
    assert "for the Created order and was not deleted" in found[1][1]
    assert found[2][1] == "reserves for an order that does not exist"
