"""`cuota demo history`: weeks of orders for the demo merchant, made through the same paths as a real order.

The sandbox's clock begins that many weeks ago, and is moved from one order to the next until now, as by `cuota time
advance`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx

from cuota.client import Client
from cuota.commands.common import show
from cuota.commands.history.act import Doer
from cuota.commands.history.plan import MOST_DAYS, HistoryAct, Step, plan
from cuota.commands.parsers import Add
from cuota.commands.place import require_service
from cuota.commands.progress import ProgressReporter, progress
from cuota.commands.time import run, stopping
from cuota.config import Settings
from cuota.core.instant import TargetInstant, timestamp
from cuota.db.sandbox import clock
from cuota.flows.context import utc_now
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.sandbox.begin_earlier import begin_earlier
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.run.travel import Traveler, traveling

ORDERS = 220
SEED = 2026
INTERRUPTED = 130
# The time between two attempts with a card.
MOMENT = timedelta(seconds=40)
# The clock counts as equal to the real time if it is behind by no more than this.
CLOSE_ENOUGH = timedelta(seconds=1)


@dataclass(frozen=True)
class AskedHistory:
    """The history to make.

    It begins at `start` and has `days` days. It is stored, so that a killed command can continue.
    """

    start: str
    days: int
    orders: int
    seed: int
    ahead: bool
    done: bool = False

    @property
    def began(self) -> datetime:
        """Return the first instant."""
        return datetime.fromisoformat(self.start)

    @property
    def steps(self) -> list[Step]:
        """Return all steps, the earliest first."""
        return plan(self.began, self.days, self.orders, self.seed)


def history(options: argparse.Namespace) -> int:
    """`cuota demo history`."""
    # The jobs log parts of the history, such as a returned payout. Without a handler, these logs would appear on the terminal.
    logging.getLogger("cuota").addHandler(logging.NullHandler())
    with progress("Making the history", "orders") as report:
        report(0, options.orders, "looking at the sandbox")
        facts, lines = run(lambda settings, where: _history(settings, where, options, report))
    show(options, facts, lines)
    return INTERRUPTED if facts["interrupted"] else 0


async def _history(
    settings: Settings, where: dict[str, Any], options: argparse.Namespace, report: ProgressReporter
) -> tuple[dict[str, Any], list[str]]:
    path = settings.data_dir / "demo-history.json"
    async with clock.connected(where) as connection:
        await require_service(settings, connection, "the history is made by its API and its pages")
        begun, now = await clock.has_orders(connection), (await clock.read(connection)).now
    asked = _stored(path) if begun else None
    if asked is None:
        asked = await _begin(where, options, now if options.ahead else None, begun=begun)
    elif asked.done:
        return _facts(None, interrupted=False), ["The history already exists. Nothing was changed."]
    _store(path, asked)
    async with traveling(settings, where) as traveler, _doer(traveler, settings) as doer:
        with stopping() as stop:
            await _follow(traveler, doer, asked, stop, report)
            # Move the clock to the end even after an interruption, so that the sandbox's clock does not stay in the
            # past.
            report(doer.done[HistoryAct.BUY], note="moving the clock to the end")
            await _to_the_end(traveler, asked)
        # Only the summary is missing. `cuota demo` terminates this process when the service has stopped, often at this moment.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _store(path, replace(asked, done=True))
    interrupted = stop.is_set() or doer.lost
    return _facts(doer, interrupted=interrupted), _lines(doer, traveler.frozen.at, interrupted=interrupted)


async def _begin(
    where: dict[str, Any], options: argparse.Namespace, at: datetime | None, *, begun: bool
) -> AskedHistory:
    """Set the clock back, unless `at` is the present time and the history begins there. Raises CannotMoveTime."""
    if begun and at is None:
        raise CannotMoveTime(
            "The sandbox has orders already, so its clock cannot go back, and a history cannot end now. Nothing was changed. Add"
            " --ahead for a history that begins now: it moves the clock --days ahead, also for the existing orders. Or start"
            " the demo with an empty CUOTA_DATA_DIR."
        )
    start = at or utc_now() - timedelta(days=options.days)
    if at is None:
        await begin_earlier(where, start)
    return AskedHistory(start.isoformat(), options.days, options.orders, options.seed, ahead=at is not None)


@contextlib.asynccontextmanager
async def _doer(traveler: Traveler, settings: Settings) -> AsyncIterator[Doer]:
    """Return the object that carries out the steps, with the demo's stored credentials.

    Raises CannotMoveTime if there are none.
    """
    path = settings.data_dir / "demo-merchant.json"
    if not path.exists():
        raise CannotMoveTime(f"There is no demo merchant in {settings.data_dir}. Start the demo: make run")
    known = json.loads(path.read_text())
    context, stop = traveler.context, asyncio.Event()
    merchant = await find_merchant(context, known["merchantId"])
    shop = merchant.origins[-1] if merchant.origins else context.settings.public_url
    told = f"{shop}/webhooks" if await asyncio.to_thread(_answers, shop) else None

    async def a_moment() -> None:
        at = traveler.frozen.at + MOMENT
        await traveler.to(TargetInstant(timestamp(at), instant=at), stop)

    url, audience = context.settings.public_url, context.settings.audience
    with Client(url, known["clientId"], known["clientSecret"], audience=audience) as pay:
        doer = Doer(context, pay, merchant.merchant_id, shop, told, a_moment)
        doer.orders |= {each.merchant_reference: each.order_id for each in pay.orders()}
        yield doer


def _answers(shop: str) -> bool:
    try:
        return httpx.get(f"{shop}/health", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


async def _follow(
    traveler: Traveler, doer: Doer, asked: AskedHistory, stop: asyncio.Event, report: ProgressReporter
) -> None:
    """Carry out the steps that are later than the clock, each at its own instant."""
    now = (await traveler.move.reading()).now
    coming = [step for step in asked.steps if step.at > now]
    for at, steps in groupby(coming, key=lambda step: step.at):
        if at > traveler.frozen.at:
            await traveler.to(TargetInstant(timestamp(at), instant=at), stop)
        if stop.is_set() or doer.lost:
            return
        # While the clock is being moved, each request reads it (web/server/standing.py), so the steps happen at this instant.
        for step in steps:
            await doer.do(step)
        report(len(doer.orders), asked.orders, f"at {at:%Y-%m-%d}")


async def _to_the_end(traveler: Traveler, asked: AskedHistory) -> None:
    """Move the clock to the real time, or with `ahead` to the end of the history. The move takes time, so repeat it."""
    while True:
        end = asked.began + timedelta(days=asked.days) if asked.ahead else utc_now()
        now = (await traveler.move.reading()).now
        if end - now < CLOSE_ENOUGH:
            return
        await traveler.to(TargetInstant(timestamp(end), instant=end), asyncio.Event())


def _facts(doer: Doer | None, *, interrupted: bool) -> dict[str, Any]:
    done = {} if doer is None else {act.value: count for act, count in doer.done.items()}
    return {"done": done, "refused": [] if doer is None else doer.refused, "interrupted": interrupted}


def _lines(doer: Doer, at: datetime, *, interrupted: bool) -> list[str]:
    counts = ", ".join(f"{count} {act.value}" for act, count in doer.done.most_common())
    first = "Stopped; what was made stays" if interrupted else "The history is ready"
    return [
        f"{first}: {counts or 'nothing'}. The sandbox's clock is at {timestamp(at)}.",
        *(f"refused: {line}" for line in doer.refused),
    ]


def _stored(path: Path) -> AskedHistory | None:
    return AskedHistory(**json.loads(path.read_text())) if path.exists() else None


def _store(path: Path, asked: AskedHistory) -> None:
    path.write_text(json.dumps(asdict(asked), indent=2) + "\n")


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def register(add: Add) -> None:
    """Register `cuota demo history`."""
    made = add(
        "history", history, "fill the demo with six weeks of orders, payouts and disputes that end now"
    )
    made.add_argument("--days", type=_number(1, MOST_DAYS), default=MOST_DAYS, help="length (default 42)")
    made.add_argument("--orders", type=_number(1, 1000), default=ORDERS, help=f"orders (default {ORDERS})")
    made.add_argument(
        "--seed", type=_number(0, 2**31), default=SEED, help="another seed makes another history"
    )
    made.add_argument(
        "--ahead", action="store_true", help="begin now instead, and move the clock that far ahead"
    )
