"""Fixtures that the tests share: one real PostgreSQL, and a service on loopback with a movable clock and its contract."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cuota import config
from support.db.copies import copied_database
from support.db.not_on_citus import reason_of
from support.folders import new_folder
from support.longest_first import in_order
from support.needed import told
from support.ports import free_port

# Fixtures import the application when they start it. Tests of pure modules do not need it, and so start faster.
if TYPE_CHECKING:
    from playwright.async_api import Browser

    from cuota.db.embedded.server import Embedded
    from support.db.template import Template
    from support.makers import Merchant, Running
    from support.own_service import Own
    from support.stripe.stand_in import StandIn
    from support.time.sandbox import Sandbox

WIDE = Path(__file__).parent / "wide.toml"

# The Citus cluster to test on, as the URL of its coordinator for a superuser. It is not a setting of the service.
CITUS = os.environ.get("CUOTA_TEST_CITUS") or os.environ.get("TESTED_CITUS")
if CITUS:
    # The test processes start after the next lines, and need the URL, too.
    os.environ["TESTED_CITUS"] = CITUS

# The fixtures that are databases of the cluster if there is one.
ON_CLUSTER = {"template", "citus", "blank_citus", "on_citus"}

for name in [name for name in os.environ if name.startswith("CUOTA_")]:
    del os.environ[name]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the files for several test processes. With a Citus cluster, run only the tests that use its
    databases, and skip those that do not apply to a cluster."""
    if hasattr(config, "workerinput"):
        place = {file: number for number, file in enumerate(in_order(item.path for item in items))}
        items.sort(key=lambda item: place[item.path])
    if not CITUS:
        return
    elsewhere = [item for item in items if not ON_CLUSTER.intersection(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=elsewhere)
    left = set(elsewhere)
    items[:] = [item for item in items if item not in left]
    for item in items:
        if reason := reason_of(item):
            item.add_marker(pytest.mark.skip(f"needs plain PostgreSQL: {reason}"))


def pytest_collection_finish() -> None:
    """Prepare this process for thousands of tests."""
    if "httpx" in sys.modules:
        from support.certificates import load_once

        load_once()
    # The collected tests live until the end. Each full garbage collection would search all of them.
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """At the end of the run, list what was not tested, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = told(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    if lines:
        terminalreporter.section("not tested")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Make a folder that the unprivileged user of the embedded PostgreSQL may enter. Pytest's own folders have mode 0700."""
    path = new_folder("cuota-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def embedded(folder: Path) -> Iterator[Embedded]:
    """The PostgreSQL of this run."""
    from cuota.db.embedded.server import open_embedded

    with open_embedded(folder / "data") as opened:
        yield opened


@pytest.fixture(scope="session")
def settings(folder: Path) -> config.Settings:
    """Return the sandbox's settings, on this run's data folder. The service listens on the port of public_url.

    The risk policy approves almost everything. Tests of risk use `replace(settings, policy=None)`, which is the
    release's policy.
    """
    given = {"CUOTA_DATA_DIR": str(folder / "data"), "CUOTA_POLICY": str(WIDE)}
    return config.load(given, listen=f"http://127.0.0.1:{free_port()}")


@pytest.fixture(scope="session")
async def template(embedded: Embedded, settings: config.Settings) -> AsyncIterator[Template]:
    """A migrated, empty database to copy from, on the Citus cluster if there is one."""
    import cuota.web.app  # noqa: F401 - every module that compares its own times with the pool's has done so now
    from support.db.template import on_cluster, on_embedded
    from support.patience import be_patient

    be_patient()
    async with on_embedded(embedded, settings) if CITUS is None else on_cluster(CITUS, settings) as made:
        yield made


@pytest.fixture
async def own_database(template: Template) -> AsyncIterator[dict[str, object]]:
    """Yield the arguments of asyncpg.connect, as the owner, for a separate migrated database, which the test may
    damage."""
    async with template.copied() as where:
        yield where


@pytest.fixture
async def empty(embedded: Embedded) -> AsyncIterator[dict[str, object]]:
    """Yield the arguments of asyncpg.connect, as the owner, for a separate empty database."""
    async with copied_database(embedded, "template1") as where:
        yield where


@pytest.fixture
def product_limits(template: Template) -> Iterator[None]:
    """The pools that this test opens have the time limits of the product. Name this fixture before `own`."""
    from support.patience import as_in_production

    with as_in_production():
        yield


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, object]) -> AsyncIterator[Own]:
    """A service on a database that this test may damage, without a port."""
    from support.own_service import opened_own

    async with opened_own(settings, own_database) as opened:
        yield opened


@pytest.fixture
async def sandbox(settings: config.Settings, own_database: dict[str, object]) -> AsyncIterator[Sandbox]:
    """A service with its jobs, a port and a movable clock, on a separate database of this test."""
    from support.time.sandbox import opened_sandbox

    async with opened_sandbox(settings, own_database) as opened:
        yield opened


@pytest.fixture(scope="session")
def on_citus() -> str:
    """The URL of the cluster's coordinator. Tests that need a cluster are skipped without one."""
    if CITUS is None:
        pytest.skip("no Citus cluster (CUOTA_TEST_CITUS, the URL of its coordinator as superuser)")
    return CITUS


@pytest.fixture(scope="module")
async def citus(on_citus: str) -> AsyncIterator[str]:
    """The URL, at the coordinator, of a migrated and distributed database that these tests may damage."""
    from support.db.cluster import cluster_database

    async with cluster_database(on_citus) as url:
        yield url


@pytest.fixture
async def blank_citus() -> AsyncIterator[str]:
    """The URL, at the coordinator, of an empty database of a Citus cluster."""
    if CITUS is None:
        pytest.skip("no Citus cluster (CUOTA_TEST_CITUS, the URL of its coordinator as superuser)")
    from support.db.cluster import blank_database

    async with blank_database(CITUS) as url:
        yield url


@pytest.fixture(scope="session")
async def service(settings: config.Settings, template: Template) -> AsyncIterator[Running]:
    """The service that most tests share. Each test makes its own merchant."""
    from support.running import running

    async with running(settings, dict(template.shared)) as started:
        yield started


@pytest.fixture
async def merchant(service: Running) -> AsyncIterator[Merchant]:
    """A merchant that captures by API calls (deferFundsCapture true), with a range of 1.00 to 2000.00."""
    from support.makers import make_merchant

    async with make_merchant(service, defer_funds_capture=True) as made:
        yield made


@pytest.fixture
async def auto_merchant(service: Running) -> AsyncIterator[Merchant]:
    """A merchant whose orders are captured at once."""
    from support.makers import make_merchant

    async with make_merchant(service, defer_funds_capture=False) as made:
        yield made


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """The browser that all tests of this process share. Each test opens its own profile."""
    from support.browser.chromium import opened_chromium

    async with opened_chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
async def stand_in() -> AsyncIterator[StandIn]:
    """The stand-in for Stripe that all tests of this process share. Each test has its own consumers."""
    from support.stripe.stand_in import opened_stand_in

    async with opened_stand_in() as opened:
        yield opened
