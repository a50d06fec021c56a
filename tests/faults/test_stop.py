"""Stopping and starting: no request is lost, and a service whose port is taken says so."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from cuota.run.stopping import STOP_SECONDS
from support.db.embedded_processes import lives
from support.faults.books import books
from support.faults.served import ORDER, Service, fork_servers_of, service, token, until
from support.ports import free_port

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def served() -> Iterator[Service]:
    with service() as made:
        made.start(workers=2)
        yield made


@dataclass
class KeepAlive:
    """A client that sends on one connection until the server closes it, and records the result of each request."""

    answered: int = 0
    refused: bool = False
    lost: list[str] = field(default_factory=list)

    async def run(self, url: str, headers: dict[str, str]) -> None:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=15, headers=headers) as http:
            while not self.refused:
                try:
                    answer = await http.post("/order", json=ORDER)
                except httpx.ConnectError:
                    self.refused = True
                except httpx.TransportError as problem:
                    self.lost.append(repr(problem))
                else:
                    self.answered += 1
                    if answer.status_code != 200:
                        self.lost.append(f"{answer.status_code} {answer.text}")


def sigterm(served: Service) -> None:
    """Stop the service as systemd does."""
    served.started[-1].send_signal(signal.SIGTERM)


def closed_terminal(served: Service) -> None:
    """Stop the service as a terminal does when its window is closed: every process gets the signal."""
    parent = served.started[-1].pid
    for pid in (*served.workers(), *fork_servers_of(parent), parent):
        os.kill(pid, signal.SIGHUP)


def started(served: Service, hangup: signal.Handlers, workers: int = 2) -> None:
    """Start the service, and stop one that runs. `hangup` is what the new one does at the end of its terminal, before its own handler."""
    if served.started[-1].poll() is None:
        served.started[-1].terminate()
        served.started[-1].wait(60)
    before = signal.signal(signal.SIGHUP, hangup)
    try:
        served.start(workers)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("stop", [sigterm, closed_terminal])
async def test_no_request_is_lost_during_a_stop_under_load_and_the_exit_code_is_0(
    served: Service, stop: Callable[[Service], None]
) -> None:
    # The tests may run under nohup themselves.
    started(served, signal.SIG_DFL)
    headers = token(served.url, await asyncio.to_thread(served.merchant))
    clients = [KeepAlive() for _ in range(16)]
    tasks = [asyncio.create_task(client.run(served.url, headers)) for client in clients]
    async with asyncio.timeout(30):
        while not all(client.answered for client in clients):  # noqa: ASYNC110 - the clients count by themselves
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    stop(served)
    code = await asyncio.to_thread(served.started[-1].wait, 60)
    await asyncio.gather(*tasks)
    assert [lost for client in clients for lost in client.lost] == []
    assert code == 0
    until(lambda: not (served.data / "pg" / "postmaster.pid").exists())


async def last_call(url: str, headers: dict[str, str], stopping: asyncio.Event, later: float) -> int:
    """Open a connection with one call, and send another one this many seconds after the stop. Return how many were answered."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, headers=headers) as http:
        answered = [await http.get("/order/unknown")]
        await stopping.wait()
        await asyncio.sleep(later)
        with contextlib.suppress(httpx.TransportError):
            answered.append(await http.get("/order/unknown"))
    return len(answered)


async def test_the_request_log_holds_the_last_calls_that_were_answered_during_a_stop(served: Service) -> None:
    if served.started[-1].poll() is not None:
        served.start(workers=2)
    merchant = served.merchant()
    person = ("--role", "owner", "--name", "Ada", "--email", "ada@shop.example")
    assert served.run("desk", "invite", "--merchant", merchant["merchantId"], *person).returncode == 0
    headers, stopping = token(served.url, merchant), asyncio.Event()
    # From one second after the stop, every twentieth of a second, until the workers have closed all connections.
    calls = [asyncio.create_task(last_call(served.url, headers, stopping, 1 + at / 20)) for at in range(24)]
    await asyncio.sleep(0.5)
    process = served.started[-1]
    process.send_signal(signal.SIGTERM)
    stopping.set()
    answered = sum(await asyncio.gather(*calls))
    assert await asyncio.to_thread(process.wait, 60) == 0
    assert answered > len(calls)

    def logged() -> object:
        with books(served.data) as opened:
            return opened.one(
                "SELECT count(*) FROM api_requests WHERE merchant_id = $1::text::uuid", merchant["merchantId"]
            )

    assert await asyncio.to_thread(logged) == answered


def test_a_service_that_nohup_started_goes_on_when_its_terminal_is_closed(served: Service) -> None:
    started(served, signal.SIG_IGN)
    closed_terminal(served)
    # The service would begin to stop at once, and then refuse new connections within two seconds.
    with pytest.raises(subprocess.TimeoutExpired):
        served.started[-1].wait(5)
    assert httpx.get(f"{served.url}/health/ready", trust_env=False, timeout=60).status_code == 200


def test_a_stop_kills_a_worker_that_hangs_in_less_than_10_seconds(
    served: Service,
) -> None:
    if served.started[-1].poll() is not None:
        served.start(workers=2)
    process, hangs = served.started[-1], served.workers()[0]
    os.kill(hangs, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    # The hung worker never ends by itself, so this returns only because the service stopped waiting for it.
    assert process.wait(120) == 0
    assert not lives(hangs)
    assert STOP_SECONDS < 10


def test_a_second_service_on_the_same_port_reports_that_the_port_is_taken_and_what_to_do(
    served: Service,
) -> None:
    if served.started[-1].poll() is not None:
        served.start()
    second = served.run("serve", "--port", str(served.port))
    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr == (
        f"cuota: Cannot listen on 127.0.0.1 port {served.port}: Address already in use. Choose another --port.\n"
    )
    assert httpx.get(f"{served.url}/health/ready", trust_env=False, timeout=60).status_code == 200


def test_a_service_on_the_data_of_a_running_one_warns_about_it(served: Service) -> None:
    if served.started[-1].poll() is not None:
        served.start()
    command = [sys.executable, "-m", "cuota", "serve", "--port", str(free_port())]
    with subprocess.Popen(
        command, env={**served.environment, "CUOTA_PUBLIC_URL": "http://127.0.0.1:9"}, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as second:  # fmt: skip
        assert second.stdout is not None
        assert "ready" in second.stdout.readline()
        second.terminate()
        _, errors = second.communicate(timeout=60)
    assert f"cuota: warning: another service is running on these data: {served.url}." in errors


def test_no_worker_keeps_running_if_the_parent_is_killed_while_the_workers_start(served: Service) -> None:
    for process in served.started:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
    parent = subprocess.Popen(
        [sys.executable, "-m", "cuota", "serve", "--port", str(served.port), "--workers", "2"],
        env=served.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    served.started.append(parent)  # type: ignore[arg-type]
    until(lambda: len(served.workers()) == 2)
    workers = served.workers()
    parent.kill()
    parent.wait()
    until(lambda: not any(lives(pid) for pid in workers))
    served.start()
