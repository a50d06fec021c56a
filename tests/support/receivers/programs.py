"""Runs the example receivers of docs/receivers as a merchant would, and makes deliveries for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from cuota.core.webhook.delivery import Attempt
from cuota.core.webhook.signature import pay_signature, webhook_signature
from cuota.db.webhook import endpoints, events
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.flows.webhook.deliver_webhooks import live_secrets, signed
from cuota.flows.webhook.show_event import event_body, event_id
from cuota.rails.http import GuardedClient
from support.makers import Merchant, order_body
from support.needed import needed
from support.ports import free_port

DOCS = Path(__file__).resolve().parents[3] / "docs"
LANGUAGES = ("python", "node", "php")


def command(language: str, port: int) -> list[str]:
    """Return the command that starts the example receiver in this language."""
    if language == "python":
        return [sys.executable, str(DOCS / "receivers/receiver.py")]
    program = needed(language)
    if language == "node":
        return [program, str(DOCS / "receivers/receiver.mjs")]
    return [program, "-S", f"127.0.0.1:{port}", str(DOCS / "receivers/receiver.php")]


@dataclass
class Receiver:
    """A running receiver."""

    url: str
    inbox: Path

    def kept(self) -> dict[str, bytes]:
        """Return what the receiver accepted: event id and body."""
        return {path.stem: path.read_bytes() for path in self.inbox.glob("*.json")}

    def left_over(self) -> list[Path]:
        return [path for path in self.inbox.iterdir() if path.suffix != ".json"]


@contextlib.asynccontextmanager
async def started(language: str, inbox: Path, webhook: str, signing: str) -> AsyncIterator[Receiver]:
    """Run the receiver until the end of the block."""
    port = free_port()
    environment = {
        **os.environ,
        "WEBHOOK_SECRET": webhook,
        "SIGNING_SECRET": signing,
        "PORT": str(port),
        "INBOX": str(inbox),
    }
    process = await asyncio.create_subprocess_exec(
        *command(language, port), env=environment, cwd=inbox.parent
    )
    try:
        await _listening(process, port)
        yield Receiver(f"http://127.0.0.1:{port}/webhooks", inbox)
    finally:
        process.terminate()
        await process.wait()


async def _listening(process: asyncio.subprocess.Process, port: int) -> None:
    for _ in range(300):
        assert process.returncode is None, "the receiver could not start; the reason is in the output above"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            await writer.wait_closed()
            return
    raise AssertionError("the receiver did not start")


async def order_told_to(merchant: Merchant, url: str) -> dict[str, Any]:
    """Create an order whose events go to this address."""
    merchant_part = order_body()["merchant"]
    assert isinstance(merchant_part, dict)
    return await merchant.create(merchant={**merchant_part, "statusCallbackUrl": url})


async def deliveries_of(merchant: Merchant, event: str) -> list[dict[str, Any]]:
    """Return the state of an event's delivery to each receiver, as the API shows it."""
    return list((await merchant.http.get(f"/events/{event}/deliveries")).json()["deliveries"])


@dataclass
class Letter:
    """One delivery that a test can change before it is sent."""

    headers: dict[str, Any]
    body: bytes

    async def send(self, url: str) -> Attempt:
        """Send the delivery with the guarded client, as the service sends every webhook."""
        client = GuardedClient(loopback=True)
        try:
            return await client.post(url, list(self.headers.items()), self.body)
        finally:
            await client.close()


async def letter(merchant: Merchant, order: dict[str, Any], at: int | None = None) -> Letter:
    """Return the order's first event, signed as the courier signs it. `at` signs it as if it were sent at another time."""
    context = merchant.service.context
    held = await endpoints.secrets_of(context.pool, merchant.merchant_id)
    order_id = UUID(order["orderId"])
    facts = await events.facts(context.pool, merchant.merchant_id, [order_id])
    body, name = event_body(facts[order_id], 1, sandbox=True), event_id(order_id, 1)
    headers = dict(signed(context, merchant.merchant_id, OWN_ADDRESS, held, name, body))
    if at is not None:
        keys = live_secrets(context, merchant.merchant_id, OWN_ADDRESS, held)
        headers["webhook-timestamp"] = str(at)
        headers["webhook-signature"] = webhook_signature(keys, name, at, body)
        assert headers["X-Pay-Signature"] == pay_signature(merchant.signing_secret, body)
    return Letter(headers, body)
