"""The page of the operator's dashboard about the installation: queues, rates and latencies, processes, clocks."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.core.operator.traffic import BUCKETS, NOTHING, Traffic, TrafficTotals
from cuota.db.operator import minutes, queues
from cuota.db.operator.minutes import Minute, Process
from cuota.flows.context import utc_now
from cuota.flows.operator.report_minute import MinuteReporter
from cuota.flows.sandbox.standstill import InFlightGate
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.web.traffic import counted
from cuota.work import minutes as job
from cuota.work.tidy import tidy
from support.makers import Merchant
from support.own_service import Own
from support.pages.operator_staff import OperatorStaff

HOUR = timedelta(hours=1)
API = "Merchant API"


def at_bucket(bucket: int, count: int = 1) -> tuple[int, ...]:
    return tuple(count if each == bucket else 0 for each in range(BUCKETS))


async def reported(
    operator: OperatorStaff,
    ago: float,
    counted: TrafficTotals,
    *,
    now: datetime | None = None,
    **process: object,
) -> Process:
    """Write a report like a process on another machine. `ago` is its age at `now`, in seconds."""
    now = now or utc_now()
    known = {
        "process_id": uuid4(),
        "machine": "pay-2",
        "pid": 4711,
        "version": "0.1.0",
        "started_at": now - HOUR,
    }
    made = Process(**{**known, **process})  # type: ignore[arg-type]
    minute = Minute(now - timedelta(seconds=ago), made, 60.0, 123_000_000, counted)
    await minutes.add(operator.service.context.pool, minute)
    return made


@pytest.fixture
async def quiet(operator: OperatorStaff, own: Own) -> OperatorStaff:
    """A person of the operator, with a database for this test alone."""
    operator.service = own.service
    operator.http = own.service.client()
    await operator.enter(OperatorRole.READ_ONLY)
    return operator


async def test_before_the_first_report_the_page_says_so(quiet: OperatorStaff) -> None:
    page = await quiet.open("/operator/system")
    assert "No process has reported yet" in page.text
    assert "No requests in the last hour" in page.text


async def test_the_figures_of_several_machines_are_added_up_and_the_page_shows_their_age(
    quiet: OperatorStaff,
) -> None:
    # The rate is over the time from the first report to the last one, so both are of the same moment.
    now = utc_now()
    for machine in ("pay-1", "pay-2"):
        fast = Traffic(300, 0, at_bucket(3, 300))
        slow = Traffic(100, 2, at_bucket(10, 100))
        await reported(quiet, 70, TrafficTotals({API: fast, "Checkout": slow}, 4), now=now, machine=machine)
    page = await quiet.open("/operator/system")
    shown = re.search(r"Added up from 2 processes; the newest report is (\d+) seconds old", page.text)
    assert shown is not None
    assert int(shown[1]) >= 70
    assert "8 more requests were refused at once" in page.text
    rows = "".join(page.text.split())
    assert "MerchantAPIFine10.000.00%10ms10ms10ms" in rows
    assert "CheckoutErrors3.332.00%2.5s2.5s2.5s" in rows
    assert "The numbers of each minute" in page.text
    assert "<rect" in page.answer.text
    assert page.text.count("Reports") >= 2


async def test_a_silent_process_is_shown_as_stopped_or_hanging(quiet: OperatorStaff) -> None:
    await reported(quiet, 200, NOTHING, machine="pay-gone")
    page = await quiet.open("/operator/system")
    assert "Stopped or hangs" in page.text.partition("pay-gone")[2]
    assert "0 reported in the last 90 seconds" in page.text


async def test_a_report_of_a_release_with_other_buckets_is_not_added(quiet: OperatorStaff) -> None:
    process = await reported(quiet, 70, NOTHING)
    figures = json.dumps({"groups": {API: [9, 0, [9]]}, "refused": 0})
    await quiet.service.context.pool.execute(
        "INSERT INTO process_minutes VALUES ($1, $2, 'm', 1, '9', $1, 60, NULL, $3::text::json)",
        utc_now() - timedelta(seconds=70), process.process_id, figures,
    )  # fmt: skip
    page = await quiet.open("/operator/system")
    assert page.status == 200
    assert f"{API} " not in page.text


async def test_a_process_counts_its_responses_and_reports_each_response_once(merchant: Merchant) -> None:
    context = merchant.service.context
    reporter = MinuteReporter(context, counted)
    for _ in range(3):
        await merchant.create()
    began = utc_now() - timedelta(seconds=5)
    await reporter.report()
    await reporter.report()
    mine = [
        each for each in await minutes.since(context.pool, began, 100) if each.process == reporter._process
    ]
    assert len(mine) == 2
    first, second = (each.counted.groups for each in mine)
    assert first[API].answers == sum(first[API].buckets) == 3
    assert API not in second
    assert mine[0].memory


async def test_a_count_that_could_not_be_written_is_in_the_next_report(own: Own) -> None:
    total = [0]

    def count() -> TrafficTotals:
        return TrafficTotals({API: Traffic(total[0], 0, at_bucket(0, total[0]))})

    reporter = MinuteReporter(own.context, count)
    total[0] = 5
    async with own.owner() as owner:
        await owner.execute("ALTER TABLE process_minutes RENAME TO elsewhere")
        with pytest.raises(Exception, match="process_minutes"):
            await reporter.report()
        await owner.execute("ALTER TABLE elsewhere RENAME TO process_minutes")
    total[0] = 7
    await reporter.report()
    (minute,) = await minutes.since(own.context.pool, datetime(2020, 1, 1, tzinfo=UTC), 10)
    assert minute.counted.groups[API].answers == 7


async def test_a_process_reports_after_its_start_and_once_more_when_it_stops(own: Own) -> None:
    stop, gate = asyncio.Event(), InFlightGate(is_open=True)
    task = asyncio.create_task(job.report_minutes(own.context, lambda: NOTHING, stop, gate))

    async def rows() -> int:
        return len(await minutes.since(own.context.pool, datetime(2020, 1, 1, tzinfo=UTC), 10))

    while not await rows():  # noqa: ASYNC110 - another task writes the row
        await asyncio.sleep(0.05)
    stop.set()
    await task
    assert await rows() == 2


async def test_no_report_is_written_while_the_sandbox_is_copied(own: Own) -> None:
    stop, gate = asyncio.Event(), InFlightGate(is_open=False)
    stop.set()
    task = asyncio.create_task(job.report_minutes(own.context, lambda: NOTHING, stop, gate))
    done, _ = await asyncio.wait([task], timeout=0.3)
    assert not done
    gate.open()
    await task


def test_each_process_writes_at_its_own_second_of_the_minute() -> None:
    for now, moment, seconds in (
        (1200.0, 2.0, 2.0),
        (1202.0, 2.0, 60.0),
        (1203.0, 2.0, 59.0),
        (1259.0, 0.5, 1.5),
    ):
        assert job._until_next(now, moment) == pytest.approx(seconds)


async def test_figures_are_kept_for_a_day(own: Own) -> None:
    pool, now = own.context.pool, utc_now()
    for hours in (1, 25):
        process = Process(uuid4(), "m", 1, "v", now)
        await minutes.add(pool, Minute(now - timedelta(hours=hours), process, 60.0, None, NOTHING))
    await tidy(own.context)
    assert len(await minutes.since(pool, now - timedelta(days=9), 10)) == 1


async def test_every_queue_counts_its_due_entries_and_shows_the_age_of_the_oldest(own: Own) -> None:
    await own.merchant.approved()
    pool, now = own.context.pool, own.context.now()
    found = await queues.queues(pool, now)
    assert found["events"].waiting > 0
    assert found["events"].since is not None
    assert found["events"].since <= now
    while await publish_events(own.context):
        pass
    found = await queues.queues(pool, now)
    assert (found["events"].waiting, found["events"].since) == (0, None)
    assert found["settlement"].waiting > 0
    assert found["settlement"].since is not None
    assert found["search"].waiting == 0, "no merchant of this database has a team"
    later = await queues.queues(pool, now + timedelta(days=15))
    assert (found["orders"].waiting, later["orders"].waiting) == (0, 1)
    assert later["orders"].since is not None


async def test_a_queue_with_an_old_entry_is_marked(quiet: OperatorStaff, own: Own) -> None:
    await own.merchant.approved()
    page = await quiet.open("/operator/system")
    assert "Look at this" not in page.text
    async with own.service.clock.moved(days=14, hours=3):
        page = await quiet.open("/operator/system")
    row = page.text.partition("Orders with an installment")[2]
    assert "Look at this" in row[:80]
    assert "hour" in row[:120] or "day" in row[:120]


async def test_webhooks_that_an_outage_of_days_has_parked_are_counted_for_30_days(
    quiet: OperatorStaff, own: Own
) -> None:
    made = await own.merchant.http.post("/webhook-endpoints", json={"url": "http://127.0.0.1:9/hook"})
    assert made.status_code == 200
    await own.merchant.approved()
    await publish_events(own.context)
    for ago in (29, 31):
        await own.context.pool.fetch(
            """UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = $1
                WHERE (order_id, sequence) IN (SELECT order_id, sequence FROM deliveries WHERE state = 'pending' LIMIT 1)""",
            own.context.now() - timedelta(days=ago),
        )
    text = (await quiet.open("/operator/system")).text
    assert text.partition("Webhooks parked in the last 30 days")[2].startswith("1"), text
    assert "1 were parked" in (await quiet.open("/operator")).text


async def test_the_page_shows_the_clocks_and_the_rails(quiet: OperatorStaff) -> None:
    page = await quiet.open("/operator/system")
    assert "Database's clock" in page.text
    assert "agrees with this machine's" in page.text
    assert "Card rails" in page.text


@pytest.mark.parametrize(
    ("days", "minutes", "words"),
    [(1, 61, "1 day and 1 hour"), (0, 601, "10 hours"), (2, 1, "2 days"), (0, 5.5, "5 minutes")],
)
async def test_the_clock_says_how_far_it_is_ahead(
    operator: OperatorStaff, days: int, minutes: float, words: str
) -> None:
    await operator.enter(OperatorRole.READ_ONLY)
    async with operator.service.clock.moved(days=days, minutes=minutes):
        page = await operator.open("/operator/system")
    assert f", {words} ahead of the real time" in page.text
