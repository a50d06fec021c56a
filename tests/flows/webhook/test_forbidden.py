"""The guarded client never connects to loopback, however the address is written."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cuota.core.webhook.delivery import Attempt
from cuota.rails.http import GuardedClient
from support.rails.listeners import certified
from support.webhook.listeners import Hook, Listener, hooked, listening

HEADERS = [("Content-Type", "application/json")]
BODY = b'{"orderId": "7", "sequence": 1}'
HIDDEN = (
    "http://127.0.0.1:{}/", "http://127.1:{}/", "http://127.0.1:{}/", "http://2130706433:{}/", "http://0x7f000001:{}/",
    "http://0x7f.1:{}/", "http://0177.0.0.1:{}/", "http://017700000001:{}/", "http://127.0.0.1.:{}/", "http://0:{}/",
    "http://0.0.0.0:{}/", "http://localhost:{}/", "http://LOCALHOST:{}/", "http://localhost.:{}/",
    "http://[::1]:{}/", "http://[::]:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://[::ffff:7f00:1]:{}/",
    "http://[0:0:0:0:0:ffff:7f00:0001]:{}/", "http://[::127.0.0.1]:{}/", "http://[64:ff9b::7f00:1]:{}/",
    "http://[2002:7f00:1::]:{}/", "http://[::1%25lo]:{}/", "http://[fe80::1%25lo]:{}/",
    "http://\uff11\uff12\uff17.0.0.1:{}/", "http://\u2460\u2461\u2466.0.0.1:{}/", "http://127\u30020\u30020\u30021:{}/",
    "http://good.example@127.0.0.1:{}/", "http://good.example:80@127.0.0.1:{}/", "http://192.0.2.1@localhost:{}/",
    "http://127.0.0.1:{}\\@192.0.2.1/", "http://127.0.0.1:{}#@192.0.2.1/", "http://127.0.0.1:{}?@192.0.2.1/",
    "https://127.0.0.1:{}/", "https://localhost:{}/", "//127.0.0.1:{}/", "ftp://127.0.0.1:{}/", "http://%31%32%37.1:{}/",
    "http://127.0.0.1\r\n:{}/", "http://\t127.0.0.1:{}/", "http://:{}/", "http://127.0.0.1%00.good.example:{}/",
)  # fmt: skip


async def post(client: GuardedClient, url: str) -> Attempt:
    return await client.post(url, HEADERS, BODY)


@pytest.fixture
async def outside() -> AsyncIterator[GuardedClient]:
    """A client with the settings of production."""
    client = GuardedClient(loopback=False)
    yield client
    await client.close()


@pytest.fixture
async def sandbox() -> AsyncIterator[GuardedClient]:
    client = GuardedClient(loopback=True)
    yield client
    await client.close()


@contextlib.asynccontextmanager
async def on_both(hook: Hook) -> AsyncIterator[list[Listener]]:
    """Listen on 127.0.0.1, and on ::1 if this machine has it."""
    async with listening(hook.serve) as four, contextlib.AsyncExitStack() as stack:
        found = [four]
        with contextlib.suppress(OSError):
            found.append(await stack.enter_async_context(listening(hook.serve, "::1")))
        yield found


def answering(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> list[str]:
    """Make the machine's resolver return these answers in turn, and then always the last one. Return the list of
    requested names."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        if host != "hooks.shop.example":
            return real(host, port, *more, **named)
        asked.append(host)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        kind = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(kind[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("url", HIDDEN, ids=ascii)
async def test_no_notation_of_loopback_reaches_it(outside: GuardedClient, url: str) -> None:
    hook = Hook()
    async with on_both(hook) as listeners:
        for listener in listeners:
            attempt = await post(outside, url.format(listener.port))
            assert not attempt.acknowledged
            assert attempt.status is None
            assert attempt.error
            assert listener.seen == 0
    assert hook.got == []


async def test_the_same_listener_is_reached_where_loopback_is_allowed(sandbox: GuardedClient) -> None:
    hook = Hook()
    async with on_both(hook) as listeners:
        # localhost has two addresses. The receiver has another port on each, and the client uses the address that accepts.
        for url in ("http://127.0.0.1:{}/", "http://localhost:{}/", "http://127.1:{}/"):
            assert (await post(sandbox, url.format(listeners[0].port))).acknowledged
        for mapped in ("http://[::ffff:127.0.0.1]:{}/", "http://0.0.0.0:{}/"):
            assert not (await post(sandbox, mapped.format(listeners[0].port))).acknowledged
    assert len(hook.got) == 3


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1", "1.1.1.1"], ["1.1.1.1", "127.0.0.1"], ["2606:4700:4700::1111", "10.0.0.1"]]
)
async def test_a_name_with_one_internal_address_is_refused_completely(
    outside: GuardedClient, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    async with hooked() as (_, listener):
        asked = answering(monkeypatch, [addresses])
        attempt = await post(outside, f"http://hooks.shop.example:{listener.port}/")
        assert (attempt.error, len(asked)) == ("the address is not on the public internet", 1)
        assert listener.seen == 0


async def test_a_name_is_resolved_once_and_the_connection_goes_to_the_checked_address(
    sandbox: GuardedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hooked() as (hook, listener):
        # A second look-up would return a forbidden address at which nothing answers.
        asked = answering(monkeypatch, [["127.0.0.1"], ["10.255.255.1"]])
        attempt = await post(sandbox, f"http://hooks.shop.example:{listener.port}/")
        assert (attempt.status, asked) == (200, ["hooks.shop.example"])
        assert hook.got[0].headers["host"] == f"hooks.shop.example:{listener.port}"


async def test_a_name_that_changes_to_an_internal_address_after_the_check_is_not_reached(
    outside: GuardedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hooked() as (_, listener):
        asked = answering(monkeypatch, [["192.0.2.1", "1.1.1.1"], ["127.0.0.1"]])
        for count in (1, 2):
            attempt = await post(outside, f"http://hooks.shop.example:{listener.port}/")
            assert (attempt.error, len(asked)) == ("the address is not on the public internet", count)
        assert listener.seen == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_acknowledges_nothing(
    sandbox: GuardedClient, status: int
) -> None:
    async with hooked() as (_, inside):
        moved = f"Location: http://127.0.0.1:{inside.port}/secret\r\n"
        async with hooked(status=status, headers=moved) as (hook, listener):
            attempt = await post(sandbox, listener.url)
            assert (attempt.status, attempt.acknowledged) == (status, False)
            assert len(hook.got) == 1
        assert inside.seen == 0


async def test_a_unix_socket_is_never_connected_to(outside: GuardedClient, tmp_path: Path) -> None:
    for url in ("unix:///run/x.sock", "http+unix://%2Frun%2Fx.sock/", f"file://{tmp_path}"):
        assert (await post(outside, url)).error


async def test_tls_keeps_the_name_while_the_connection_goes_to_the_checked_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook, named = Hook(), []
    tls, trusted = certified(tmp_path, "hooks.shop.example")
    tls.sni_callback = lambda _socket, name, _context: named.append(name)
    client = GuardedClient(loopback=True, tls=ssl.create_default_context(cafile=trusted))
    async with listening(hook.serve, tls=tls) as listener:
        answering(monkeypatch, [["127.0.0.1"]])
        assert (await post(client, f"https://hooks.shop.example:{listener.port}/")).status == 200
        assert (named, hook.got[0].headers["host"]) == (
            ["hooks.shop.example"],
            f"hooks.shop.example:{listener.port}",
        )
        # A certificate for another name is refused before anything is sent.
        refused = await post(client, f"https://localhost:{listener.port}/")
        assert "certificate" in (refused.error or "").lower()
        assert len(hook.got) == 1
    await client.close()


async def test_a_certificate_without_a_trusted_issuer_is_refused(
    sandbox: GuardedClient, tmp_path: Path
) -> None:
    hook = Hook()
    async with listening(hook.serve, tls=certified(tmp_path, "localhost")[0]) as listener:
        attempt = await post(sandbox, f"https://localhost:{listener.port}/")
        assert "certificate" in (attempt.error or "").lower()
        assert hook.got == []


async def test_hanging_name_servers_do_not_delay_other_receivers(
    sandbox: GuardedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, release = socket.getaddrinfo, asyncio.Event()
    loop = asyncio.get_running_loop()

    def getaddrinfo(host: Any, *more: Any, **named: Any) -> Any:
        if str(host).endswith(".slow.example"):
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(30)
            raise socket.gaierror("no such name")
        return real(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    waiting = [asyncio.create_task(post(sandbox, f"http://h{n}.slow.example/")) for n in range(20)]
    await asyncio.sleep(0.1)
    async with hooked() as (_, listener), asyncio.timeout(60):
        assert (await post(sandbox, f"http://localhost:{listener.port}/")).acknowledged
    assert not any(attempt.done() for attempt in waiting)
    release.set()
    assert {attempt.error for attempt in await asyncio.gather(*waiting)} == {"the name cannot be resolved"}
