"""Data past its retention period is deleted, by the service's clock. All other data and the ledger are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.dispute.dispute import DisputeParty
from cuota.core.dispute.evidence import EvidenceFile
from cuota.db.privacy import retention
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.dispute.evidence import store_evidence
from cuota.flows.plan.send_messages import send_messages
from cuota.work.retention import keep_terms
from support.disputes import captured, disputed
from support.flows.due import settle_all_due
from support.flows.people import PERSON, PHONE, PREFILL, WORDS, bought, paid_off, words_left
from support.makers import checkout, complete
from support.own_service import Own


async def kept(own: Own) -> int:
    """Delete everything that is due now, and check that a second run deletes nothing."""
    done = 0
    while more := await keep_terms(own.context):
        done += more
    return done


async def later(own: Own, days: int) -> None:
    """Move the clock by this many days, and do all work that becomes due."""
    own.service.clock.ahead += timedelta(days=days)
    await settle_all_due(own.context)
    while await send_messages(own.context):
        pass


async def abandoned(own: Own) -> dict[str, object]:
    """Make an order that its consumer left after entering all details."""
    order = await own.merchant.create("30.00", **PREFILL)
    await checkout(own.service, own.merchant.merchant_id, order, PERSON, PHONE)
    await leave_checkout(own.context, own.merchant.merchant_id, UUID(str(order["orderId"])))
    return order


async def test_the_personal_data_of_an_abandoned_order_is_deleted_after_its_period_and_not_before(
    own: Own,
) -> None:
    order = await abandoned(own)
    await later(own, 89)
    await kept(own)
    assert (await own.merchant.read(order))["consumer"]["surname"] == "Quackenbush"
    await later(own, 2)
    assert await kept(own)
    record = await own.merchant.read(order)
    assert (record["consumer"], record["billing"], record["metadata"]) == (None, None, {})
    assert record["orderStatus"] == "Abandoned"
    assert (await verify(own.context.pool)).disagreements == []


async def test_the_personal_data_of_a_declined_order_is_kept_as_long_as_the_law_requires(own: Own) -> None:
    order = await own.merchant.create("30.00", **PREFILL)
    person = replace(PERSON, surname="Declinetest")
    await complete(own.service, own.merchant.merchant_id, order, profile=person, phone=PHONE)
    await later(own, 100)
    await kept(own)
    assert (await own.merchant.read(order))["consumer"] is not None
    await later(own, 670)
    await kept(own)
    assert (await own.merchant.read(order))["consumer"] is None
    # The person never agreed to a plan, so the entered details are deleted too. Browsers and the inbox have their own
    # periods.
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM consumers") == 0
        await owner.execute("TRUNCATE checkout_sessions, message_simulator.inbox")
    assert await words_left(own) == []
    assert (await verify(own.context.pool)).disagreements == []


async def test_an_approved_order_is_not_changed(own: Own) -> None:
    order = await bought(own)
    await later(own, 1000)
    await kept(own)
    assert (await own.auto_merchant.read(order))["consumer"]["surname"] == "Quackenbush"
    assert set(await words_left(own)) == set(WORDS)


async def test_messages_and_attempts_are_deleted_after_their_periods(own: Own) -> None:
    await bought(own)
    await later(own, 1)
    async with own.owner() as owner:
        await owner.execute(
            """INSERT INTO delivery_attempts (merchant_id, order_id, sequence, receiver, number, at, ms)
            SELECT merchant_id, order_id, 1, gen_random_uuid(), n, $1, 5 FROM orders, generate_series(1, 450) n""",
            own.context.now(),
        )

    async def rows(table: str) -> int:
        async with own.owner() as owner:
            return int(await owner.fetchval(f"SELECT count(*) FROM {table}"))

    settled = await rows("messages")
    assert settled
    await later(own, 88)
    await kept(own)
    assert await rows("delivery_attempts") == 450
    await later(own, 2)
    # The job works in batches.
    await keep_terms(own.context)
    assert await rows("delivery_attempts") == 450 - retention.BATCH
    await kept(own)
    assert (await rows("delivery_attempts"), await rows("messages") >= settled) == (0, True)
    await paid_off(own)
    await later(own, 800)
    await kept(own)
    assert await rows("messages") == 0


async def test_many_orders_are_processed_in_batches_and_each_once(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    orders = [await own.merchant.create("10.00", **PREFILL) for _ in range(8)]
    await later(own, 91)
    assert await keep_terms(own.context) == 3
    await kept(own)
    assert [(await own.merchant.read(order))["consumer"] for order in orders] == [None] * 8
    assert await keep_terms(own.context) == 0


async def test_an_order_that_never_ends_does_not_prevent_the_deletion_of_others(own: Own) -> None:
    stuck = await own.merchant.create("10.00", **PREFILL)
    ended = await own.merchant.create("10.00", **PREFILL)
    await leave_checkout(own.context, own.merchant.merchant_id, UUID(ended["orderId"]))
    own.service.clock.ahead += timedelta(days=91)
    await kept(own)
    assert (await own.merchant.read(ended))["consumer"] is not None, "it waits for the one before it"
    own.service.clock.ahead += timedelta(days=31)
    await kept(own)
    assert (await own.merchant.read(ended))["consumer"] is None
    assert (await own.merchant.read(stuck))["orderStatus"] == "Created"


async def test_the_files_of_a_dispute_that_was_never_saved_are_deleted_after_a_day(own: Own) -> None:
    file = EvidenceFile("note.txt", "text/plain", b"Nothing came.")
    saved = await disputed(own.merchant, await captured(own.merchant), 4000, files=(file,))
    # Simulate a service that was killed before it saved the dispute.
    dispute_id = own.context.new_id()
    ids = own.merchant.merchant_id, dispute_id
    await store_evidence(own.context, *ids, DisputeParty.CONSUMER, "Look", (file, file))

    async def files_of() -> set[UUID]:
        async with own.owner() as owner:
            return {row["dispute_id"] for row in await owner.fetch("SELECT dispute_id FROM dispute_files")}

    own.service.clock.ahead += timedelta(hours=23)
    await kept(own)
    assert await files_of() == {saved.dispute_id, dispute_id}
    own.service.clock.ahead += timedelta(hours=2)
    assert await kept(own)
    assert await files_of() == {saved.dispute_id}
