"""The harness finds each of fifteen planted bugs, and finds nothing in the same build without a bug."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.faults import drives, limits, nets
from support.faults.campaign import Campaign, campaign_on
from support.faults.drives import Drive, ready, serial
from support.faults.served import fork_servers_of, until
from support.faults.struck import BuggedService
from support.faults.struck_shop import Shop, struck_shop
from support.ports import free_port

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def bugged() -> Iterator[Shop]:
    with struck_shop(2, BuggedService) as made:
        yield made


BUGS: dict[str, tuple[Drive, str]] = {
    "answer before commit": (drives.killed_after, "but the database has no such movement"),
    "event in a second transaction": (drives.killed_at_save, "events are numbered"),
    "timeout around COMMIT": (
        drives.hung_at_save,
        "is in the database, but no client got an answer that says so",
    ),
    "marked before sent": (drives.killed_at_send, "is marked delivered, but never arrived"),
    "float amounts": (drives.odd_amount, "requested 29, answered 28"),
    "plan cut from the front": (drives.voided, "the plan is"),
    "rejected key burnt": (drives.refused_and_freed, "answered taken"),
    "tenant left out": (drives.strangers, "(not theirs): answered applied"),
    "retry that changes its key": (drives.card_cut, "no charge of ours"),
    "claim without its predicate": (drives.calm_load, "arrived 2 times"),
    "reservations not counted": (limits.two_at_once, "owes more than the limit"),
}


@contextmanager
def fresh(bugged: Shop, merchants: int = 1) -> Iterator[Campaign]:
    """Start with an empty journal. Ignore what an earlier bug did to the card network's records."""
    service, hooks, books = bugged.service, bugged.hooks, bugged.books
    with campaign_on(service, hooks, books, 1, merchants=merchants, orders=1) as under:
        under.known(books)
        yield under


def test_the_drives_find_no_problem_if_no_bug_is_active(bugged: Shop) -> None:
    with fresh(bugged, 2) as under:
        for drive in dict.fromkeys(drive for drive, _ in BUGS.values()):
            assert drive(bugged, under) == []
        assert nets.keys(bugged.books) == []
        done, synced = nets.syncs(bugged.books, lambda: serial(under))
        assert synced >= done


@pytest.mark.parametrize("bug", BUGS)
def test_each_planted_bug_is_found(bugged: Shop, bug: str) -> None:
    drive, finds = BUGS[bug]
    service: Any = bugged.service
    with fresh(bugged, 2 if drive is drives.strangers else 1) as under, service.planted(bug):
        problems = drive(bugged, under)
    assert any(finds in problem for problem in problems), problems


def restarted(shop: Shop) -> None:
    """Replace the workers, and the fork server, which reads BUG_FILE for them when it starts."""
    old = shop.service.workers()
    for process in (*fork_servers_of(shop.service.started[-1].pid), *old):
        os.kill(process, signal.SIGKILL)
    until(
        lambda: len(shop.service.workers()) == 2 and not {*old} & {*shop.service.workers()} and ready(shop),
        30,
    )


@contextmanager
def rare_writer(shop: Shop) -> Iterator[None]:
    """Inside the block, the WAL writer syncs every ten seconds instead of five times a second.

    On a busy machine, an operation takes longer than a fifth of a second. Each would then have a sync, although none waits for it.
    """
    shop.books.rows("ALTER SYSTEM SET wal_writer_delay = '10s'")
    shop.books.rows("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        shop.books.rows("ALTER SYSTEM RESET wal_writer_delay")
        shop.books.rows("SELECT pg_reload_conf()")


def test_sessions_with_synchronous_commit_off_are_found_by_counting_disk_writes(bugged: Shop) -> None:
    service: Any = bugged.service
    with fresh(bugged) as under:
        with service.planted("synchronous_commit=off"), rare_writer(bugged):
            restarted(bugged)
            done, synced = nets.syncs(bugged.books, lambda: serial(under))
        assert synced < done
        # Without the bug, the count is correct again.
        restarted(bugged)


def test_a_server_with_fsync_off_is_found_by_counting_disk_writes_and_refused_at_the_start(
    bugged: Shop,
) -> None:
    service: Any = bugged.service
    with fresh(bugged) as under:
        with service.planted("fsync=off"):
            postmaster_anew(bugged)
            done, synced = nets.syncs(bugged.books, lambda: serial(under))
            refused = service.run("serve", "--port", str(free_port()))
        postmaster_anew(bugged)
    assert synced < done
    assert (refused.returncode, "fsync = off: it could lose payments" in refused.stderr) == (1, True)
    assert bugged.books.one("SHOW fsync") == "on"


def postmaster_anew(shop: Shop) -> None:
    old = shop.service.postmaster
    os.kill(old, signal.SIGKILL)
    until(lambda: shop.service.postmaster not in {0, old} and ready(shop), 60)


def test_a_database_with_synchronous_commit_off_is_refused_at_the_start(bugged: Shop) -> None:
    bugged.books.rows("ALTER DATABASE cuota SET synchronous_commit = off")
    try:
        refused = bugged.service.run("serve", "--port", str(free_port()))
    finally:
        bugged.books.rows("ALTER DATABASE cuota RESET synchronous_commit")
    assert refused.returncode == 1
    assert "synchronous_commit = off: it could lose payments" in refused.stderr


def test_the_embedded_server_stays_durable_although_its_configuration_file_was_edited(bugged: Shop) -> None:
    for name in ("fsync", "full_page_writes"):
        bugged.books.rows(f"ALTER SYSTEM SET {name} = off")
        bugged.books.rows("SELECT pg_reload_conf()")
        time.sleep(0.3)
        assert bugged.books.one(f"SHOW {name}") == "on"
        bugged.books.rows(f"ALTER SYSTEM RESET {name}")


@contextmanager
def unguarded(bugged: Shop) -> Iterator[None]:
    """Inside the block, the database function save_orders saves an order without comparing its version."""
    [[text]] = bugged.books.rows(
        "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'save_orders' AND NOT 'exposure_version' = ANY (proargnames)"
    )
    bad = text
    for guard in (" AND o.version = orders_version[1];", " AND o.version = n.version\n"):
        assert guard in bad
        bad = bad.replace(guard, guard[-1])
    bugged.books.rows(bad)
    try:
        yield
    finally:
        bugged.books.rows(text)


def test_if_only_the_version_check_is_missing_clients_get_errors_but_the_database_loses_no_update(
    bugged: Shop,
) -> None:
    with fresh(bugged) as under, unguarded(bugged):
        problems = drives.crowded(bugged, under)
    assert problems
    assert [problem for problem in problems if "): 500 " not in problem] == []


def test_if_only_the_unique_key_of_movements_is_missing_the_version_check_still_works_and_the_missing_key_is_found(
    bugged: Shop,
) -> None:
    bugged.books.rows("ALTER TABLE movements DROP CONSTRAINT movements_pkey")
    try:
        assert nets.keys(bugged.books) == ["a row of movements was taken twice"]
        with fresh(bugged) as under:
            assert drives.one_key_at_once(bugged, under) == []
    finally:
        columns = "merchant_id, order_id, kind, reference"
        bugged.books.rows(f"ALTER TABLE movements ADD CONSTRAINT movements_pkey PRIMARY KEY ({columns})")


def test_if_the_version_check_and_the_unique_keys_are_missing_lost_updates_and_duplicate_keys_are_found(
    bugged: Shop,
) -> None:
    # This must be the last test in the file, because it never restores the primary keys.
    for table in ("movements", "transfers", "events", "outbox", "deliveries"):
        bugged.books.rows(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey CASCADE")
    with fresh(bugged) as under, unguarded(bugged):
        problems = drives.one_key_at_once(bugged, under)
    assert any("key applied" in problem for problem in problems), problems
    assert any("the order says" in problem for problem in problems), problems
