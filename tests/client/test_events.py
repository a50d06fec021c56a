"""The feed, the endpoints, and webhooks that the service really sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from cuota.client import BadWebhook, Event, NotFound, RequestRefused, verify_webhook
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.client_tools import Both, reason
from support.makers import Merchant, order_body
from support.sending import deliver, webhook_secret


@dataclass
class Address:
    """A merchant's receiver on loopback. `got` has the headers and body of each webhook."""

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name: value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        length = next(int(value) for name, value in headers.items() if name.lower() == "content-length")
        self.got.append((headers, await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nseen")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def address() -> AsyncIterator[Address]:
    opened = Address()
    server = await asyncio.start_server(opened.serve, "127.0.0.1", 0)
    opened.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
    async with server:
        yield opened


async def test_the_feed_is_read_page_by_page_even_while_it_grows(shop: Both, merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    for number in range(3):
        await merchant.move(order, "capture", "1.00", f"ship-{number}")
    await publish_events(merchant.service.context)
    seen: list[Event] = []
    async for event in shop.events(page_size=2):
        seen.append(event)
        if len(seen) in {1, 4}:
            await merchant.move(order, "capture", "1.00", f"more-{len(seen)}")
            await publish_events(merchant.service.context)
    assert [event.sequence for event in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [event.type for event in seen] == ["order.created", "order.approved", *["capture.completed"] * 5]
    assert (seen[-1].amount, seen[-1].operation, seen[-1].success) == (Decimal("1.00"), "CaptureOrder", True)
    assert seen[-1].order is not None
    assert (seen[-1].order.captured, seen[-1].order_id) == (Decimal("5.00"), order["orderId"])
    assert [event.id async for event in shop.events(seen[4].id)] == [seen[5].id, seen[6].id]
    assert [event.id async for event in shop.events(seen[-1].id)] == []


async def test_an_unknown_event_id_is_refused_and_does_not_start_at_the_beginning_of_the_feed(
    shop: Both,
) -> None:
    with pytest.raises(RequestRefused) as caught:
        [event async for event in shop.events("evt_&limit=1")]
    assert caught.value.code in {"validation_failed", "not_found"}


async def test_an_endpoint_is_registered_changed_tested_and_removed(shop: Both, merchant: Merchant) -> None:
    async with address() as hooks, address() as moved:
        made = await shop("register_endpoint", hooks.url, "Shop")
        assert (made.url, made.description, made.state) == (hooks.url, "Shop", "active")
        assert made.secret.startswith("whsec_")
        assert made.secret not in repr(made)
        assert (await shop("get_endpoint", made.id)).secret is None
        tested = await shop("test_endpoint", made.id)
        assert (tested.acknowledged, tested.status, tested.answer) == (True, 200, "")
        assert verify_webhook(hooks.got[0][1], hooks.got[0][0], made.secret)["type"] == "webhook.test"
        assert (await shop("change_endpoint", made.id, paused=True)).state == "paused"
        changed = await shop("change_endpoint", made.id, paused=False, url=moved.url, description="New")
        assert (changed.state, changed.url, changed.description) == ("active", moved.url, "New")
        await shop("create_order", order_body())
        await deliver(merchant)
        assert len(moved.got) == 1
        assert await shop("replay_endpoint", made.id) == 1
        await deliver(merchant)
        assert [verify_webhook(body, headers, made.secret)["sequence"] for headers, body in moved.got] == [
            1,
            1,
        ]
        await shop("remove_endpoint", made.id)
        assert await shop("endpoints") == ()
        assert (await reason(shop("get_endpoint", made.id), NotFound)).status == 404


async def test_during_a_rotation_the_old_the_new_or_both_secrets_verify_a_webhook(
    shop: Both, merchant: Merchant
) -> None:
    async with address() as hooks:
        first = await shop("register_endpoint", hooks.url)
        second = await shop("rotate_secret", first.id)
        assert second.secret != first.secret
        await shop("test_endpoint", first.id)
        headers, body = hooks.got[0]
        for secrets in (first.secret, second.secret, [first.secret, second.secret]):
            assert verify_webhook(body, headers, secrets, merchant.signing_secret)["success"] is True
        with pytest.raises(BadWebhook, match="signature"):
            verify_webhook(body, headers, await webhook_secret(merchant))


async def test_a_delivery_is_valid_only_with_its_secrets_and_its_exact_bytes(merchant: Merchant) -> None:
    secret = await webhook_secret(merchant)
    async with address() as hooks:
        part = {**order_body()["merchant"], "statusCallbackUrl": hooks.url}  # type: ignore[dict-item]
        order = await merchant.create("119.96", merchant=part, description="Café ☕")
        await deliver(merchant)
    headers, body = hooks.got[0]
    event = Event.read(verify_webhook(body, headers, [secret], merchant.signing_secret))
    assert (event.type, event.order_id, event.amount) == (
        "order.created",
        order["orderId"],
        Decimal("119.96"),
    )
    bad: list[tuple[bytes, dict[str, str], str, str | None]] = [
        (body.replace(b"119.96", b"119.95"), headers, secret, None),
        (json.dumps(json.loads(body)).encode(), headers, secret, None),
        (body, headers, "whsec_YW5vdGhlcg==", None),
        (body, headers, secret, "another"),
        (body, {**headers, "webhook-id": "evt_other"}, secret, None),
        (body, {**headers, "webhook-timestamp": str(int(time.time()) + 1)}, secret, None),
        (body, {**headers, "WEBHOOK-ID": "twice"}, secret, None),
        (body, {**headers, "webhook-signature": "v1,é \x00"}, secret, None),
        (body, {}, secret, None),
    ]
    for case in bad:
        with pytest.raises(BadWebhook):
            verify_webhook(*case)
    for name in headers:
        if name.lower() in {"webhook-id", "webhook-timestamp", "webhook-signature", "x-pay-signature"}:
            rest = {other: value for other, value in headers.items() if other != name}
            with pytest.raises(BadWebhook):
                verify_webhook(body, rest, secret, merchant.signing_secret)


async def test_a_delivery_is_valid_for_five_minutes_before_and_after_its_time(merchant: Merchant) -> None:
    secret = await webhook_secret(merchant)
    async with address() as hooks:
        await merchant.create(merchant={**order_body()["merchant"], "statusCallbackUrl": hooks.url})  # type: ignore[dict-item]
        await deliver(merchant)
    headers, body = hooks.got[0]
    sent_at = int(next(value for name, value in headers.items() if name.lower() == "webhook-timestamp"))
    for off in (-300, 0, 300):
        assert verify_webhook(body, headers, secret, now=sent_at + off)
    for off in (-301, 301, 86400):
        with pytest.raises(BadWebhook, match="five minutes"):
            verify_webhook(body, headers, secret, now=sent_at + off)
    assert verify_webhook(body, headers, secret, now=datetime.fromtimestamp(sent_at, UTC))
    with pytest.raises(BadWebhook):
        verify_webhook(body, headers, secret, now=datetime.fromtimestamp(sent_at, UTC) + timedelta(hours=1))
