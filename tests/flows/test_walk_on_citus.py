"""On a Citus cluster (CUOTA_TEST_CITUS), the main functions of the running service work for merchants of every
worker."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest

from cuota.config import Settings
from cuota.core.dispute.dispute import DisputeReason
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.answer_dispute import decide_dispute, submit_evidence
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.flows.risk.explain_order import explain_order, explain_plan
from cuota.flows.sandbox.fork_sandbox import fork, rewind
from cuota.flows.sandbox.move_time import CannotMoveTime
from support.api.receiver import Receiver, receiving
from support.makers import PROFILE, Merchant, complete, make_merchant
from support.pages.consumer import Consumer
from support.phones import phone_number
from support.signed import started
from support.time.sandbox import Sandbox, opened_sandbox
from support.virtual_card import virtual_order
from support.waiting import until

PORT_OF = """SELECT nodeport FROM citus_shards WHERE table_name = 'orders'::regclass
    AND shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""
WORKERS = "SELECT node_port FROM citus_get_active_worker_nodes()"
# The sandbox's test card that always declines.
DECLINED = "4000 0000 0000 0002"
# The card whose bank takes the first payment back after a week.
CHARGED_BACK = "4000 0000 0000 2685"


@pytest.fixture(params=["through the coordinator", "through a worker"])
async def sandbox(
    on_citus: str, settings: Settings, own_database: dict[str, Any], request: pytest.FixtureRequest
) -> AsyncIterator[Sandbox]:
    """The service with its background jobs, on a separate distributed database."""
    if request.param == "through a worker":
        where = own_database
        owner = await asyncpg.connect(**where)
        port = min(row["node_port"] for row in await owner.fetch(WORKERS))
        await owner.close()
        parts = urlsplit(on_citus)
        there = f"{parts.netloc.rpartition(':')[0]}:{port}"
        settings = replace(
            settings, database_entry_url=parts._replace(netloc=there, path=where["database"]).geturl()
        )
    async with opened_sandbox(settings, own_database) as opened:
        yield opened


@pytest.fixture
async def shops(sandbox: Sandbox) -> AsyncIterator[list[Merchant]]:
    """One merchant on each worker."""
    owner = await asyncpg.connect(**sandbox.where)
    left = {row["node_port"] for row in await owner.fetch(WORKERS)}
    found = []
    async with AsyncExitStack() as stack:
        while left:
            made = await stack.enter_async_context(make_merchant(sandbox.service))
            port = await owner.fetchval(PORT_OF, made.merchant_id)
            if port in left:
                left.remove(port)
                found.append(made)
        await owner.close()
        yield found


async def events(shop: Merchant) -> list[dict[str, Any]]:
    return list((await shop.http.get("/events?limit=100")).json()["events"])


async def told(receiver: Receiver, order: dict[str, Any], count: int) -> None:
    """Wait until the receiver has this many events of an order."""

    def of_order() -> int:
        return sum(json.loads(body)["orderId"] == order["orderId"] for _, body in receiver.got)

    await until(lambda: of_order() >= count)


async def test_an_order_is_created_captured_and_refunded_and_the_merchant_gets_its_webhooks(
    sandbox: Sandbox, shops: list[Merchant]
) -> None:
    for shop in shops:
        async with receiving() as receiver:
            made = await shop.http.post("/webhook-endpoints", json={"url": receiver.url})
            assert made.status_code == 200, made.text
            assert (await shop.http.get("/configuration")).status_code == 200
            key = {"Idempotency-Key": secrets.token_hex(8)}
            order = await shop.approved("100.00", metadata={"cart": "7"})
            moved = await shop.move(order, "capture", "60.00", "first", headers=key)
            again = await shop.move(order, "capture", "60.00", "first", headers=key)
            assert (moved.status_code, again.json()) == (200, moved.json())
            assert (await shop.move(order, "capture", "60.00", "second")).status_code == 422
            assert (await shop.move(order, "void", "10.00")).status_code == 200
            assert (await shop.move(order, "refund", "5.00")).status_code == 200
            record = await shop.read(order)
            assert record["orderStatus"] == "Approved"
            await told(receiver, order, 6)
            kinds = [event["type"] for event in await events(shop) if event["orderId"] == order["orderId"]]
            assert kinds[:2] == ["order.created", "order.approved"]
            assert sorted(kinds[2:]) == [
                "capture.completed",
                "capture.rejected",
                "refund.completed",
                "void.completed",
            ]
            listed = (await shop.http.get("/orders")).json()["data"]
            assert [each["orderId"] for each in listed] == [order["orderId"]]
        context = sandbox.context
        refused = await shop.create("50.00")
        # A card that the rail declines, and a surname that the sandbox's risk check declines.
        await complete(sandbox.service, shop.merchant_id, refused, DECLINED, phone=phone_number())
        assert (await shop.read(refused))["orderStatus"] == "Created"
        declined = await shop.create("50.00")
        profile = replace(PROFILE, surname="Declinetest")
        await complete(sandbox.service, shop.merchant_id, declined, profile=profile)
        assert (await shop.read(declined))["orderStatus"] == "Declined"
        assert await explain_order(context, order["orderId"])
        assert await explain_plan(context, order["orderId"])
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_installments_are_charged_on_their_days_and_messages_are_sent(
    sandbox: Sandbox, shops: list[Merchant]
) -> None:
    orders = [(shop, await shop.approved("80.00")) for shop in shops]
    for shop, order in orders:
        assert (await shop.move(order, "capture", "80.00")).status_code == 200
    await sandbox.advance("60d")
    for shop, order in orders:
        rows = await sandbox.fetch(
            "SELECT count(charge_id) AS paid, count(*) AS all FROM installments WHERE merchant_id = $1 AND order_id = $2",
            shop.merchant_id,
            UUID(order["orderId"]),
        )
        assert tuple(rows[0]) == (4, 4)
        messages = await sandbox.fetch(
            "SELECT DISTINCT state FROM messages WHERE merchant_id = $1", shop.merchant_id
        )
        assert [row["state"] for row in messages] == ["sent"]
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_disputes_chargebacks_and_payouts_have_the_same_results_as_on_one_server(
    sandbox: Sandbox, shops: list[Merchant]
) -> None:
    context = sandbox.context
    for shop in shops:
        order, charged_back = await shop.approved("100.00"), await shop.create("80.00")
        await complete(sandbox.service, shop.merchant_id, charged_back, CHARGED_BACK, phone=phone_number())
        for each, amount in ((order, "100.00"), (charged_back, "80.00")):
            assert (await shop.move(each, "capture", amount)).status_code == 200
        ids = shop.merchant_id, UUID(order["orderId"])
        await notice_return(context, *ids, "UPS", "1Z999")
        dispute = await open_dispute(context, *ids, DisputeReason.NOT_RECEIVED, 4000, "Nothing came.")
        assert (await shop.move(order, "refund", "10.00")).status_code == 200
        await submit_evidence(context, shop.merchant_id, dispute.dispute_id, "It was delivered.")
        await decide_dispute(context, shop.merchant_id, dispute.dispute_id, for_consumer=True)
    await sandbox.advance("40d")
    for shop in shops:
        outcomes = await sandbox.fetch(
            "SELECT kind, outcome FROM disputes WHERE merchant_id = $1 ORDER BY kind", shop.merchant_id
        )
        assert [tuple(row) for row in outcomes] == [("chargeback", "lost"), ("dispute", "lost")]
        (paid,) = await sandbox.fetch(
            "SELECT sum(amount)::bigint AS cents, count(*) FILTER (WHERE status <> 'paid') AS waiting FROM payouts WHERE merchant_id = $1",
            shop.merchant_id,
        )
        # 180 were captured, 10 and 30 refunded. The 20 that were charged back later are a debt.
        assert (paid["cents"], paid["waiting"]) == (14000, 0)
        (left,) = await sandbox.fetch(
            "SELECT open_net FROM settlements WHERE merchant_id = $1", shop.merchant_id
        )
        assert left["open_net"] == -2000
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_a_consumer_pays_on_the_account_page_and_is_exported_and_erased(
    sandbox: Sandbox, shops: list[Merchant]
) -> None:
    async with sandbox.service.client() as http:
        consumer = Consumer(http, sandbox.service, phone_number())
        plans = [await consumer.buy_at(shop) for shop in shops]
        page = await consumer.enter()
        for shop in shops:
            assert shop.name in page.text
        for plan in plans:
            assert (await plan.shop.move(plan.order, "capture", "100.00")).status_code == 200
            await consumer.pay(plan, "all=1")
        found = await export_consumer(sandbox.context, consumer.phone)
        assert len(found["orders"]) == len(shops)
    await sandbox.advance("90d")
    erased = await erase_consumer(sandbox.context, consumer.phone, dry_run=False)
    assert erased
    assert (await verify(sandbox.context.pool)).disagreements == []


async def test_a_checkout_by_the_sdk_and_a_virtual_card_work(sandbox: Sandbox, shops: list[Merchant]) -> None:
    del sandbox
    for shop in shops:
        first = await started(shop)
        assert (await started(shop))["orderId"] == first["orderId"]
        virtual = await virtual_order(shop)
        card = await virtual.card()
        authorized = await virtual.authorize(card, "100.00")
        cleared = await virtual.clear(authorized["authorizationId"], "capture", "100.00")
        assert cleared.status_code == 200, cleared.text


async def test_a_fork_and_a_rewind_are_refused_with_one_line_of_error(sandbox: Sandbox) -> None:
    for call in (fork, rewind):
        with pytest.raises(CannotMoveTime, match="Citus cluster cannot be forked or rewound") as refused:
            await call(sandbox.where, "before")
        assert "\n" not in str(refused.value)
    assert datetime.now(UTC) - await sandbox.now() < timedelta(hours=1)
