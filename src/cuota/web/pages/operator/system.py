"""The state of the installation: requests and processes, queues, card rails, and the clocks."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.role import OperatorAction
from cuota.core.order.order import LOOK_UP_AFTER
from cuota.core.risk.explanation import counted
from cuota.db import server_time, workers
from cuota.db.cluster.living import LivingNodes
from cuota.db.desk.webhooks import PARKED_FOR
from cuota.db.operator import operator_figures
from cuota.db.plan import rail_figures
from cuota.db.plan.rail_figures import Figures
from cuota.flows.context import Context, utc_now
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.queues_view import queue_section
from cuota.web.pages.operator.traffic_view import traffic_sections
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

DAY = timedelta(days=1)


@allowed(OperatorAction.READ_SYSTEM)
async def system(request: Request, desk: OperatorDesk) -> Response:
    """Show the state of the installation."""
    context = service_of(request).context
    alive = await workers.count_alive(context.pool)
    shown: PageContext = {
        **common(request, desk, "System", here=f"{PATH}/system"),
        "sections": [
            await _facts(context, desk.every),
            await queue_section(context, desk.every),
            *await traffic_sections(context, alive),
            await _rails(context, desk.every),
        ],
    }
    return page(request, "operator/page.html", shown)


def _span(ahead: timedelta) -> str:
    """Return a span of more than a minute in days and hours; in minutes if it is less than an hour."""
    hours = ahead.seconds // 3600
    parts = [counted(number, noun) for number, noun in ((ahead.days, "day"), (hours, "hour")) if number]
    return " and ".join(parts) or counted(ahead.seconds // 60, "minute")


async def _facts(context: Context, every: LivingNodes) -> PageContext:
    waits, settings = await operator_figures.backlog(every, context.now()), context.settings
    clock = when(context.now())
    ahead = context.now() - utc_now()
    if settings.sandbox and ahead > timedelta(minutes=1):
        clock += f", {_span(ahead)} ahead of the real time"
    bank = context.rails.bank
    return section(
        pairs=[
            ("Environment", settings.environment),
            ("Address", settings.public_url),
            ("Clock", clock),
            ("Database's clock", await _database_clock(context)),
            ("Webhooks not delivered yet", f"{waits.waiting:,}, {waits.failing:,} of them tried before"),
            (f"Webhooks parked in the last {PARKED_FOR.days} days", f"{waits.parked:,}"),
            ("Bank rail", "none: payouts wait" if bank is None else bank.name),
            ("Policy", context.policy.version),
        ]
    )


async def _database_clock(context: Context) -> str:
    """Return the difference between the database's clock and this machine's clock.

    Tokens and sign-ins have times of each machine's own clock.
    """
    before = utc_now()
    at = await server_time.read(context.pool)
    after = utc_now()
    if before <= at <= after:
        return "agrees with this machine's"
    seconds = (at - after if at > after else before - at).total_seconds()
    return f"{seconds:.3f} seconds {'ahead of' if at > after else 'behind'} this machine's; more than a second is worth a look"


async def _rails(context: Context, every: LivingNodes) -> PageContext:
    cards, now = context.rails.card, context.now()
    active = cards.active.name
    found = await rail_figures.figures(every, active, now - DAY, now - LOOK_UP_AFTER)
    names = sorted({*found, *cards.by_name}, key=lambda name: (name != active, name))
    rows = [_rail(found.get(name, Figures(name)), name == active) for name in names]
    columns = [
        cell("Card rail"), cell("State"), cell("Charges in a day", amount=True), cell("Declined", amount=True, wide=True),
        cell("Without an answer", amount=True, wide=True), cell("Events to apply", amount=True, wide=True),
    ]  # fmt: skip
    return table("Card rails", columns, rows, "")


def _rail(each: Figures, active: bool) -> list[PageContext]:  # noqa: FBT001 - a fact of the row
    last = f"last event {when(each.last_event_at)}" if each.last_event_at else "no event yet"
    return [
        cell(each.name, more=each.problem or last),
        state("Trouble", "bad")
        if each.problem or each.waiting
        else state("Active" if active else "Kept", "done"),
        cell(f"{each.charges:,}", amount=True),
        cell(f"{each.declined:,}", amount=True, wide=True),
        cell(f"{each.waiting:,}", amount=True, wide=True),
        cell(f"{each.events_waiting:,}", amount=True, wide=True),
    ]
