"""`cuota work` alone: it does due work beside the service's own workers, stops cleanly, and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.faults.served import service, until
from support.faults.struck import StruckService, World, receiver, world_of
from support.ports import free_port

pytestmark = pytest.mark.faults


@contextmanager
def worker(served: StruckService) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cuota", "work"], env=served.environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    with process.stdout:
        assert json.loads(process.stdout.readline())["working"] is True
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def world() -> Iterator[World]:
    with service() as plain, receiver() as hooks:
        served = StruckService(plain.data, free_port())
        try:
            served.start()
            yield world_of(served, hooks)
        finally:
            served.kill()


def test_two_cuota_work_processes_do_due_work_once_and_stop_within_seconds(world: World) -> None:
    order = world.approved()
    with worker(world.service) as first, worker(world.service) as second:
        # The service has stopped, so the two workers do all work that becomes due now.
        world.service.stop()
        world.later("20 days")
        expired = "SELECT captured = 0 AND voided = amount FROM orders WHERE order_id = $1::text::uuid"
        until(lambda: world.ask(expired, order), 60)
        until(
            lambda: world.receiver.bodies and world.receiver.bodies[-1]["type"] == "authorization.expired", 30
        )
        assert world.receiver.sequences(order) == list(range(1, len(world.receiver.sequences(order)) + 1))
        for process in (first, second):
            process.terminate()
        assert [process.wait(60) for process in (first, second)] == [0, 0]
    assert world.service.run("verify").returncode == 0
