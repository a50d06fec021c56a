"""`kill -9` of each process under load: every acknowledged operation exists exactly once, and the ledger agrees."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from support.faults.served import ORDER, Client, Service, service, token, until

pytestmark = pytest.mark.faults
CLIENTS = 8
SECONDS = 3.0
PATIENCE = 120.0


@pytest.fixture(scope="module")
def served() -> Iterator[Service]:
    with service() as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def merchant(served: Service) -> dict[str, Any]:
    return served.merchant()


def approved(served: Service, headers: dict[str, str]) -> str:
    """An order that its consumer completed in the hosted pages."""
    created = httpx.post(
        f"{served.url}/order", json=ORDER, headers=headers, trust_env=False, timeout=60
    ).json()
    walked = served.run("sandbox", "complete", created["redirectUrl"], "--outcome", "approved")
    assert walked.returncode == 0, walked.stderr
    return str(created["orderId"])


async def under_load(
    served: Service, merchant: dict[str, Any], strike: Callable[[], None]
) -> tuple[list[Client], dict[str, str]]:
    """Run eight clients for three seconds. Call `strike` in the middle."""
    headers = token(served.url, merchant)
    orders = [await asyncio.to_thread(approved, served, headers) for _ in range(2)]
    clients = [Client(served.url, merchant, orders[n % 2]) for n in range(CLIENTS)]
    stop = asyncio.Event()
    tasks = [asyncio.create_task(client.run(stop, headers)) for client in clients]
    async with asyncio.timeout(PATIENCE):
        # On a busy machine, some time passes until every client has applied an operation.
        while not all(client.applied for client in clients):  # noqa: ASYNC110 - clients tell nobody
            await asyncio.sleep(SECONDS / 30)
    await asyncio.sleep(SECONDS / 3)
    await asyncio.to_thread(strike)
    await asyncio.sleep(SECONDS * 2 / 3)
    stop.set()
    await asyncio.gather(*tasks)
    return clients, headers


async def hold_to_account(served: Service, clients: list[Client], headers: dict[str, str]) -> None:
    """Check that every acknowledged operation exists once with its amount. If an answer was lost, repeat the request to
    get the result."""
    assert [strange for client in clients for strange in client.strange] == []
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60, headers=headers) as http:
        for client in clients:
            for reference in client.lost:
                body = {"amount": "0.01", "merchantReference": reference}
                answer = await http.post(f"/order/{client.order}/capture", json=body)
                if answer.status_code != 200:
                    assert answer.json()["code"] == "duplicate_reference", answer.text
                    assert answer.json()["original"]["sameRequest"] is True
            for order_id in client.created:
                assert (await http.get(f"/order/{order_id}")).json()["amount"] == 100
        for order in {client.order for client in clients}:
            record = (await http.get(f"/order/{order}")).json()
            wanted = [
                ref for client in clients if client.order == order for ref in (*client.applied, *client.lost)
            ]
            assert sorted(capture["merchantReference"] for capture in record["captures"]) == sorted(wanted)
            assert {capture["amount"] for capture in record["captures"]} == {0.01}
            assert round(record["capturedAmount"] * 100) == len(wanted)
    report = await asyncio.to_thread(served.run, "verify", "--json")
    assert (report.returncode, json.loads(report.stdout)["disagreements"]) == (0, []), report.stdout


def kill(pid: int) -> None:
    assert pid > 1
    os.kill(pid, signal.SIGKILL)


async def test_no_operation_is_lost_when_a_worker_is_killed_and_the_worker_is_replaced(
    served: Service, merchant: dict[str, Any]
) -> None:
    (before,) = served.workers()
    clients, headers = await under_load(served, merchant, lambda: kill(before))
    until(served.answers)
    (after,) = served.workers()
    assert after != before
    await hold_to_account(served, clients, headers)


async def test_no_operation_is_lost_when_postgres_is_killed_and_postgres_starts_again(
    served: Service, merchant: dict[str, Any]
) -> None:
    before = served.postmaster
    clients, headers = await under_load(served, merchant, lambda: kill(before))
    until(lambda: served.answers() and served.postmaster != before)
    await hold_to_account(served, clients, headers)


async def test_no_operation_is_lost_when_the_parent_is_killed_and_a_new_parent_can_start_at_once(
    served: Service, merchant: dict[str, Any]
) -> None:
    def strike() -> None:
        kill(served.started[-1].pid)
        served.started[-1].wait()
        served.start()

    clients, headers = await under_load(served, merchant, strike)
    await hold_to_account(served, clients, headers)


async def test_no_operation_is_lost_when_all_processes_are_killed_and_the_service_starts_without_a_manual_step(
    served: Service, merchant: dict[str, Any]
) -> None:
    def strike() -> None:
        parent = served.started[-1]
        for pid in (parent.pid, *served.workers(), served.supervisor, served.postmaster):
            kill(pid)
        parent.wait()
        served.start(workers=2)

    clients, headers = await under_load(served, merchant, strike)
    await hold_to_account(served, clients, headers)
