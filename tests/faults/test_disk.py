"""A full disk, and a disk whose fsync fails: no response is false, and the service recovers without an operator.

The tests need the rights to mount and to trace, which root has on Linux. Without these rights, they are skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from support.faults.campaign import SAMPLE_SECONDS, Campaign, campaign_on
from support.faults.disks import (
    eat,
    failing_fsync,
    full,
    on_small_disks,
    panics,
    processes,
    struck,
    to_the_brim,
    wal_of,
)
from support.faults.drives import ready
from support.faults.fronts import Storefront
from support.faults.served import children, until
from support.faults.struck import StruckService
from support.faults.struck_shop import Shop, struck_shop
from support.long_run import LONG, seed_of_campaign

pytestmark = pytest.mark.faults

CLIENTS = 8
SOME = 40
BACK_SECONDS = 60.0
WATCHED_SECONDS = 1.0
# Longer than the service tries to find out the result of an operation. After that, the service answers that the result
# is unknown.
DOWN_SECONDS = 6.0
# Together with DOWN_SECONDS, this is longer than one supervisor keeps trying to start a failing PostgreSQL.
MORE_SECONDS = 30.0 if LONG else 0.0
ROUNDS = 2
ANSWERS = {(200, False), (404, False), (409, False), (409, True), (422, False), (503, True)}
Heard = Counter[tuple[int, bool]]
Act = Callable[[list[Storefront]], None]


@pytest.fixture(scope="module")
def small() -> Iterator[Shop]:
    """A service with two workers. The data folder is on a separate small disk, and the write-ahead log on another
    one."""
    with struck_shop(2, StruckService, on_small_disks) as made:
        yield made


@pytest.fixture(scope="module")
def may_trace(small: Shop) -> None:
    """Skip the test if fsync cannot be made to fail. This is tried with an idle process."""
    idle = processes(small.service, b"replication launcher")
    with failing_fsync(idle, small.service.data.parent / "fsync.idle"):
        assert idle


@pytest.fixture(scope="module")
def under(small: Shop) -> Iterator[Campaign]:
    """One campaign for all tests, so that each test also checks the operations of the earlier tests."""
    seed = seed_of_campaign()
    with campaign_on(small.service, small.hooks, small.books, seed, orders=1) as made:
        yield made


def loaded(under: Campaign, act: Act) -> None:
    """Call `act` while storefronts write. Compare their responses with the database, during the run and at the end."""
    fronts = under.storefronts(under.service.url, CLIENTS, longest=10.0)
    for front in fronts:
        front.believes = 0.5

    async def go() -> None:
        acting = asyncio.create_task(asyncio.to_thread(act, fronts))
        running = [asyncio.create_task(front.run(lambda: not acting.done())) for front in fronts]
        while not all(task.done() for task in (acting, *running)):
            await asyncio.to_thread(under.look)
            if acting.done():
                # An abandoned idempotency key is released after half a minute. Release it immediately.
                await asyncio.to_thread(under.hurry)
            await asyncio.wait([acting, *running], timeout=SAMPLE_SECONDS)
        await asyncio.gather(acting, *running)

    asyncio.run(go())
    under.minute_later()
    print(dict(heard(fronts)), dict(under.tally()))
    assert under.close_the_books() == []
    # Each response is definite, or has Retry-After.
    assert set(heard(fronts)) <= ANSWERS


def heard(fronts: list[Storefront]) -> Heard:
    return sum((front.heard for front in fronts), Heard())


def wait_for(answer: tuple[int, bool], number: int, fronts: list[Storefront]) -> float:
    """Wait until storefronts have received `number` more responses of this kind. Return the seconds that this took."""
    began, before = time.monotonic(), heard(fronts)[answer]
    while heard(fronts)[answer] < before + number:
        waited = time.monotonic() - began
        assert waited < BACK_SECONDS, f"not heard in {waited:.0f} s: {answer}, but {heard(fronts)}"
        time.sleep(0.02)
    return time.monotonic() - began


def done(fronts: list[Storefront], number: int = SOME) -> float:
    return wait_for((200, False), number, fronts)


def put_off(fronts: list[Storefront], number: int = SOME) -> float:
    return wait_for((503, True), number, fronts)


def test_on_a_full_disk_writes_are_refused_reads_still_work_and_writes_work_again_once_there_is_space(
    small: Shop, under: Campaign
) -> None:
    service, merchant = small.service, under.merchants[0]
    postmaster, before, read = service.postmaster, panics(service), Counter[int]()

    def act(fronts: list[Storefront]) -> None:
        done(fronts)
        with full(service.data):
            put_off(fronts)
            assert ready(small)
            enough = time.monotonic() + WATCHED_SECONDS
            with httpx.Client(
                base_url=service.url, headers=merchant.headers, trust_env=False, timeout=60
            ) as http:
                while time.monotonic() < enough:
                    read[http.get(f"/order/{merchant.orders[0]}").status_code] += 1
        print(f"back after {done(fronts, CLIENTS):.1f} s")

    loaded(under, act)
    assert set(read) == {200}
    assert (service.postmaster, panics(service)) == (postmaster, before)


def test_postgres_stops_if_the_disk_has_no_space_for_its_log_and_starts_again_once_there_is_space(
    small: Shop, under: Campaign
) -> None:
    service, before, supervisor = small.service, panics(small.service), small.service.supervisor

    def act(fronts: list[Storefront]) -> None:
        done(fronts)
        with full(wal_of(service)):
            eat(small.books.where)
            # From here on, the disk has no space, not even for a lock file or a log line.
            with full(service.data):
                to_the_brim(service.data / "postgres.log")
                put_off(fronts, CLIENTS)
                time.sleep(DOWN_SECONDS)
                assert Path(f"/proc/{supervisor}").exists(), "who starts PostgreSQL has ended"
                time.sleep(MORE_SECONDS)
                assert not ready(small)
        print(f"back after {done(fronts, CLIENTS):.1f} s")

    loaded(under, act)
    assert panics(service) > before


@pytest.mark.usefixtures("may_trace")
def test_a_commit_whose_fsync_fails_is_acknowledged_only_after_it_is_on_the_disk(
    small: Shop, under: Campaign
) -> None:
    service, before = small.service, panics(small.service)

    def act(fronts: list[Storefront]) -> None:
        for number in range(ROUNDS):
            done(fronts)
            notes = service.data.parent / f"fsync.{number}"
            with failing_fsync(processes(service, b"[local]"), notes):
                struck(notes)
            print(f"back after {done(fronts, CLIENTS):.1f} s")

    loaded(under, act)
    assert panics(service) >= before + ROUNDS


@pytest.mark.usefixtures("may_trace")
def test_no_operation_is_lost_when_the_fsync_of_a_checkpoint_fails(small: Shop, under: Campaign) -> None:
    service, before = small.service, panics(small.service)

    async def checkpoint() -> None:
        connection = await asyncpg.connect(**small.books.where)
        with contextlib.suppress(asyncpg.PostgresError):
            await connection.execute("CHECKPOINT")
        connection.terminate()

    def act(fronts: list[Storefront]) -> None:
        done(fronts)
        notes = service.data.parent / "fsync.checkpoint"
        with failing_fsync(processes(service, b"checkpointer"), notes):
            asyncio.run(checkpoint())
            struck(notes)
        print(f"back after {done(fronts, CLIENTS):.1f} s")

    loaded(under, act)
    assert panics(service) > before


@pytest.mark.usefixtures("may_trace")
def test_no_operation_is_lost_when_every_fsync_fails_for_a_while_even_during_recovery(
    small: Shop, under: Campaign
) -> None:
    service, before = small.service, panics(small.service)

    def act(fronts: list[Storefront]) -> None:
        done(fronts)
        notes = service.data.parent / "fsync.all"
        everybody = [service.supervisor, service.postmaster, *children(service.postmaster)]
        with failing_fsync(everybody, notes, followed=True):
            put_off(fronts, CLIENTS)
            # Stop while the same supervisor runs. The next supervisor's PostgreSQL would not be traced.
            time.sleep(DOWN_SECONDS)
            assert not ready(small)
        struck(notes)
        print(f"back after {done(fronts, CLIENTS):.1f} s")

    loaded(under, act)
    assert panics(service) > before


def test_a_service_that_cannot_start_its_postgres_keeps_trying_until_it_can(small: Shop) -> None:
    service, log = small.service, small.service.data / "postgres.log"
    log.unlink()
    log.mkdir()  # PostgreSQL cannot write its log to a folder, just as it cannot write to a full or read-only disk
    try:
        os.kill(service.supervisor, signal.SIGKILL)
        until(lambda: not ready(small))
        time.sleep(WATCHED_SECONDS)
        assert service.started[-1].poll() is None
    finally:
        log.rmdir()
    until(lambda: ready(small), BACK_SECONDS)
