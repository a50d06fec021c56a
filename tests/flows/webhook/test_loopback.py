"""Webhooks to this machine are sent only if no other machine can reach the service. The response's text is never
stored."""

from __future__ import annotations

import asyncio

import httpcore
import pytest

from cuota import config
from cuota.rails import http
from cuota.rails.http import GuardedClient
from support.webhook.listeners import listening, read_request


@pytest.mark.parametrize(
    ("listen", "setting", "allowed"),
    [
        ("http://127.0.0.1:8000", None, True), ("http://localhost:8000", None, True), ("http://[::1]:8000", None, True),
        ("http://0.0.0.0:8000", None, False), ("http://[::]:8000", None, False), ("http://192.168.1.5:80", None, False),
        ("http://0.0.0.0:8000", "allow", True), ("http://127.0.0.1:8000", "refuse", False),
    ],
)  # fmt: skip
def test_webhooks_to_loopback_are_sent_if_the_service_listens_on_loopback_or_a_setting_allows_it(
    listen: str, setting: str | None, *, allowed: bool
) -> None:
    given = {"CUOTA_LOOPBACK_WEBHOOKS": setting} if setting else {}
    assert config.load(given, listen=listen).loopback_webhooks is allowed


def test_an_invalid_value_of_the_setting_is_named() -> None:
    with pytest.raises(config.BadSettings, match="CUOTA_LOOPBACK_WEBHOOKS: must be allow or refuse"):
        config.load({"CUOTA_LOOPBACK_WEBHOOKS": "yes"})


async def test_if_webhooks_to_loopback_are_refused_no_connection_is_made() -> None:
    async with listening(_says) as hook:
        client = GuardedClient(loopback=False)
        attempt = await client.post(hook.url, [], b"{}")
        await client.close()
    assert (attempt.status, hook.seen) == (None, 0)
    assert attempt.error == "the address is not on the public internet"


async def _says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret")
    await writer.drain()


async def test_the_text_of_an_answer_from_this_machine_is_not_stored() -> None:
    async with listening(_says) as hook:
        client = GuardedClient(loopback=True)
        attempt = await client.post(hook.url, [], b"{}")
        await client.close()
    assert (attempt.status, attempt.answer) == (200, b"")


async def test_the_first_kib_of_an_answer_from_another_machine_is_stored() -> None:
    answer = httpcore.Response(500, content=b"why: " + b"x" * 5000)
    assert await http._first_bytes(answer) == b"why: " + b"x" * 1019
