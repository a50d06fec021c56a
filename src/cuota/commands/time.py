"""`cuota time`: show the sandbox's clock, move it forward, save copies of the sandbox, and go back to a copy."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

import asyncpg

from cuota import config
from cuota.commands.common import acting, require_database, show
from cuota.commands.parsers import Add, Command, adder
from cuota.commands.place import announce, called
from cuota.commands.progress import progress
from cuota.config import Settings
from cuota.core.instant import BadInstant, TargetInstant, read_instant, timestamp
from cuota.core.risk.explanation import counted
from cuota.core.sandbox import ahead_of_real, scheduled
from cuota.db.sandbox import clock, forks
from cuota.flows.operator.log_action import OperatorNote, log_done
from cuota.flows.sandbox import fork_sandbox
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.run import runtime
from cuota.run.travel import traveling
from cuota.work.advance import Advanced, AdvanceProgress, ReportBatch, ReportProgress, WorkDone

INTERRUPTED = 130
# The summary names this many receivers that timed out. There may be thousands; --json has all of them.
MOST_NAMED = 10
T = TypeVar("T")


def run(
    flow: Callable[[Settings, dict[str, Any]], Awaitable[T]],
    note: Callable[[T], OperatorNote] | None = None,
) -> T:
    """Run one flow on the sandbox's database and return its result. `where` are the arguments of a connection to it.

    `note` is written into the operator's log after the flow, because a rewind replaces the log.

    Raises CannotMoveTime in production, and if the flow needs the owner of the tables and the settings do not name the owner.
    """
    if config.environment() != "sandbox":
        raise CannotMoveTime("Time can be moved only in the sandbox, and CUOTA_ENVIRONMENT is production.")
    require_database()
    settings = config.load()
    with runtime.database(settings) as where:

        async def go() -> T:
            await runtime.migrated(settings, where)
            async with clock.connected(where) as connection:
                await announce(settings, connection)
            result = await flow(settings, where)
            if note is not None:
                async with clock.connected(where) as connection:
                    await log_done(connection, acting(), note(result))
            return result

        try:
            return asyncio.run(go())
        except asyncpg.InsufficientPrivilegeError:
            raise CannotMoveTime(
                "Only the owner of the tables can copy the sandbox or go back to a copy. Nothing was changed."
                " Set CUOTA_DATABASE_OWNER_URL to the owner's database address."
            ) from None


def time_show(options: argparse.Namespace) -> int:
    """`cuota time`."""

    async def flow(settings: Settings, where: dict[str, Any]) -> int:
        async with clock.connected(where) as connection:
            seen = await clock.read(connection)
            waiting = await clock.next_of_each(connection, seen.now, settings.write_off_days)
            taken = await forks.read_all(connection)
        facts = {
            "now": timestamp(seen.now),
            "aheadSeconds": round(seen.ahead.total_seconds(), 3),
            "moving": seen.moving,
            "next": [{"at": timestamp(item.at), "what": item.table, "count": item.rows} for item in waiting],
            "forks": [{"name": fork.name, "serviceTime": timestamp(fork.service_time)} for fork in taken],
        }
        lines = [
            f"{facts['now']}  {ahead_of_real(seen.ahead)}{'; the clock is being moved right now' if seen.moving else ''}"
        ]
        lines += [f"next  {timestamp(item.at)}  {scheduled(item.table, item.rows)}" for item in waiting]
        lines += [f"fork  {timestamp(fork.service_time)}  {fork.name}" for fork in taken]
        show(options, facts, lines if waiting else [*lines, "Nothing is scheduled."])
        return 0

    return run(flow)


def time_advance(options: argparse.Namespace) -> int:
    """`cuota time advance`. It returns when all work that became due meanwhile is done."""

    def tell(at: datetime, done: WorkDone) -> None:
        # Retries of webhooks are not printed one by one, because there can be very many. The summary counts them.
        if not options.json and (done.events or done.paid or done.jobs):
            print(f"{timestamp(at)}  {_summary(done)}", flush=True)

    with progress("Moving the clock") as report:
        report(0, note="waiting for the service to pause its own background work")

        def watch(seen: AdvanceProgress) -> None:
            span, gone = seen.target - seen.before, seen.at - seen.before
            report(gone.total_seconds(), span.total_seconds(), _on_the_way(seen))

        moved = run(lambda settings, where: travel(settings, where, options.to, tell, watch), _moved)
    facts = {
        "from": timestamp(moved.before),
        "to": timestamp(moved.after),
        "steps": moved.instants,
        "jobs": dict(moved.done.jobs),
        "events": dict(moved.done.events),
        "consumers": dict(moved.done.paid),
        "webhooks": {name: moved.done.webhooks[name] for name in ("attempts", "acknowledged", "timedOut")},
        "receiversThatTimedOut": moved.hung,
        "stopped": moved.stopped,
    }
    end = "Stopped: the service's clock is at" if moved.stopped else "The service's clock is at"
    lines = [f"{end} {facts['to']}. On the way: {_summary(moved.done)}."]
    if moved.hung:
        lines.append(
            f"These receivers did not answer in time: {_named(moved.hung)}. Cuota keeps the events"
            f" that they missed. To send those again, see: {called()} webhook replay --help"
        )
    show(options, facts, lines)
    return INTERRUPTED if moved.stopped else 0


def _named(hosts: list[str]) -> str:
    more = len(hosts) - MOST_NAMED
    return ", ".join(hosts[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _moved(moved: Advanced) -> OperatorNote:
    before, after = {"clock": timestamp(moved.before)}, {"clock": timestamp(moved.after)}
    return OperatorNote("sandbox.advance", "The sandbox's clock", "", before=before, after=after)


def _summary(done: WorkDone) -> str:
    """Return counts of events by type, of payments and messages, and of webhooks attempted and acknowledged."""
    found = [f"{count} {name}" for name, count in done.events.items()]
    found += [_paid(count, name) for name, count in done.paid.items()]
    if tried := done.webhooks["attempts"]:
        found.append(_attempted(tried, done.webhooks["acknowledged"]))
    return ", ".join(found) or "nothing was due"


def _paid(count: int, name: str) -> str:
    """Return a count of payments or messages, such as `2 payments received` or `33 messages (receipt)`."""
    noun, _, rest = name.partition(" ")
    return f"{counted(count, noun)} {f'({rest})' if noun == 'message' else rest}"


def _attempted(tried: int, acknowledged: int) -> str:
    return (
        f"{tried} webhook {'attempt' if tried == 1 else 'attempts'} ({acknowledged or 'none'} acknowledged)"
    )


def _on_the_way(seen: AdvanceProgress) -> str:
    """Return the text next to the percentage in the progress line."""
    parts = [f"at {timestamp(seen.at)}"]
    if seen.attempts:
        parts.append(_attempted(seen.attempts, seen.acknowledged))
    if seen.under_way:
        parts.append(f"waiting for {seen.under_way} {'answer' if seen.under_way == 1 else 'answers'}")
    if seen.hung:
        parts.append(f"{seen.hung} {'receiver does' if seen.hung == 1 else 'receivers do'} not answer")
    return ", ".join(parts)


@contextlib.contextmanager
def stopping() -> Iterator[asyncio.Event]:
    """Return an event that SIGINT and SIGTERM set inside the block. A second signal has its default effect: it ends the process."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def interrupted(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted, number)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def travel(
    settings: Settings,
    where: dict[str, Any],
    target: TargetInstant,
    tell: ReportBatch,
    watch: ReportProgress = lambda _: None,
) -> Advanced:
    """Advance the clock in this process, until a signal stops it between two instants."""
    # Set the handlers only after the wait for the clock, so that a signal ends that wait at once.
    async with traveling(settings, where) as traveler:
        with stopping() as stop:
            return await traveler.to(target, stop, tell, watch)


def time_fork(options: argparse.Namespace) -> int:
    """`cuota time fork`."""
    made = run(
        lambda settings, where: fork_sandbox.fork(
            runtime.owner(settings, where), options.name, replace=options.replace
        ),
        lambda made: OperatorNote(
            "sandbox.fork", f"Fork {made.name}", "", after={"replaced": "yes"} if options.replace else None
        ),
    )
    text = f"{made.rows} rows copied to {made.name}, at {timestamp(made.service_time)}."
    _show_copied(options, made, [text, f"To go back to this copy: {called()} time rewind {made.name}"])
    return 0


def time_rewind(options: argparse.Namespace) -> int:
    """`cuota time rewind`."""
    back = run(
        lambda settings, where: fork_sandbox.rewind(runtime.owner(settings, where), options.name),
        lambda back: OperatorNote("sandbox.rewind", f"Back to the fork {back.name}", ""),
    )
    text = f"The sandbox is back at {timestamp(back.service_time)}, with the {back.rows} rows of {back.name}."
    _show_copied(options, back, [text])
    return 0


def _show_copied(options: argparse.Namespace, copied: fork_sandbox.Copied, lines: list[str]) -> None:
    facts = {"name": copied.name, "serviceTime": timestamp(copied.service_time), "rows": copied.rows}
    show(options, facts, lines)


def time_forget(options: argparse.Namespace) -> int:
    """`cuota time forget`."""
    run(
        lambda settings, where: fork_sandbox.forget(runtime.owner(settings, where), options.name),
        lambda _: OperatorNote("sandbox.forget", f"Fork {options.name}", ""),
    )
    show(options, {"forgotten": options.name}, [f"The fork {options.name} was deleted."])
    return 0


def _instant(text: str) -> TargetInstant:
    try:
        return read_instant(text)
    except BadInstant as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None


def register(add: Add) -> None:
    """`cuota time ...`."""
    whole = add(
        "time", time_show, "show the sandbox's clock, move it forward, copy the sandbox, or go back to a copy"
    )
    plain = adder(whole.add_subparsers(metavar="COMMAND"))

    def under(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        parser = plain(name, command, text, json=False)
        # `--json` may also come before the subcommand. SUPPRESS keeps that value instead of resetting it.
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        return parser

    forward = under(
        "advance", time_advance, "move the clock forward; do all work that becomes due, each at its own time"
    )
    forward.add_argument(
        "to",
        type=_instant,
        metavar="SPAN_OR_DATE",
        help="a span (90m, 36h, 14d, 6w) or a date (2026-12-25, 2026-12-25T09:30Z)",
    )
    for name, command, text in (
        ("fork", time_fork, "save a copy of the whole sandbox"),
        ("rewind", time_rewind, "go back to a fork; everything that happened since then is lost"),
        ("forget", time_forget, "delete a fork"),
    ):
        parser = under(name, command, text)
        parser.add_argument("name", metavar="NAME")
        if name == "fork":
            parser.add_argument(
                "--replace", action="store_true", help="replace an existing fork of this name"
            )
