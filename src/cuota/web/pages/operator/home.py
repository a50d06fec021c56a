"""The first page of the operator's dashboard: the waiting work, with links to its lists."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import day
from cuota.core.operator.role import OperatorAction
from cuota.core.payout.arrival import day_at_bank
from cuota.db import workers
from cuota.db.cluster.living import LivingNodes
from cuota.db.onboarding import onboardings
from cuota.db.operator import operator_figures
from cuota.db.payout import operator_list
from cuota.db.plan.charges import sum_failed
from cuota.db.risk import reviews
from cuota.flows.context import Context
from cuota.flows.payout.days import days_now
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of


@allowed(OperatorAction.READ_ORDERS)
async def home(request: Request, desk: OperatorDesk) -> Response:
    """Show the waiting work."""
    context = service_of(request).context
    cards = [await _disputes(desk.every), await _onboarding(desk.every)]
    if desk.may(OperatorAction.READ_REVIEWS):
        cards.append(await _reviews(context, desk.every))
    if desk.may(OperatorAction.READ_MONEY):
        cards += await _money(context, desk.every)
    cards += await _system(context, desk.every)
    shown = {
        **common(
            request,
            desk,
            "What waits",
            here=PATH,
            lead=f"{day(day_at_bank(context.now()), year=True)}, all merchants",
        ),
        "cards": cards,
        "chart": None,
        "partly": None,
        "empty": False,
    }
    return page(request, "desk/home.html", shown)


def _card(label: str, value: str, more: str, address: str, kind: str = "") -> PageContext:
    return {"label": label, "value": value, "more": more, "address": f"{PATH}/{address}", "kind": kind}


async def _disputes(every: LivingNodes) -> PageContext:
    count, since = await operator_figures.to_decide(every)
    more = f"the first was opened {when(since)}" if since else "nothing waits for you"
    return _card("Disputes to decide", f"{count:,}", more, "disputes?view=decide", "wait" if count else "")


async def _reviews(context: Context, every: LivingNodes) -> PageContext:
    found = await reviews.count(every, context.now())
    more = f"the first must be answered by {when(found.first)}" if found.first else "nothing waits for you"
    urgent = "bad" if found.running_out else "wait" if found.waiting else ""
    return _card("Orders to review", f"{found.waiting:,}", more, "risk/reviews", urgent)


async def _onboarding(every: LivingNodes) -> PageContext:
    count, since = await onboardings.count_to_check(every)
    waiting = await onboardings.count_open(every)
    more = f"the first since {when(since)}" if since else f"{waiting:,} wait for their approval"
    return _card(
        "Merchants to check", f"{count:,}", more, "merchants?state=check" if count else "merchants?state=onboarding",
        "wait" if count else "",
    )  # fmt: skip


async def _money(context: Context, every: LivingNodes) -> list[PageContext]:
    today = day_at_bank(context.now())
    troubled = await operator_list.count_troubled(every, days_now(context))
    paused = len(await operator_list.paused(every, None))
    refused, owed = await sum_failed(every)
    overdue = await operator_figures.aging(every, today)
    count = sum(each.installments for each in overdue)
    runs = await operator_figures.runs(context.pool, 1)
    held, held_amount = await operator_list.count_held(every)
    wrong = runs[0].problems if runs else 0
    return [
        _card(
            "Payouts to look at", f"{troubled:,}", f"{paused:,} merchants are paused after a return",
            "payouts?status=look" if troubled else "payouts", "bad" if troubled or paused else "",
        ),
        _card(
            "Payouts to release", f"{held:,}", f"{money.shown(held_amount)} that is held", "payouts?status=held",
            "wait" if held else "",
        ),
        _card(
            "Card refunds owed", f"{refused:,}",
            f"{money.shown(owed)} that a card refused", "books",
            "bad" if refused else "",
        ),
        _card("Overdue", money.shown(sum(each.amount for each in overdue)), f"{count:,} installments", "books"),
        _card(
            "Last check of the books", f"{wrong:,} differences" if runs else "never",
            f"{runs[0].orders:,} orders, {when(runs[0].at)}" if runs else "run: cuota verify", "books",
            "bad" if wrong else "",
        ),
    ]  # fmt: skip


async def _system(context: Context, every: LivingNodes) -> list[PageContext]:
    waits = await operator_figures.backlog(every, context.now())
    alive = await workers.count_alive(context.pool)
    return [
        _card(
            "Webhooks waiting", f"{waits.waiting:,}", f"{waits.failing:,} were tried before, {waits.parked:,} were parked",
            "system", "wait" if waits.failing or waits.parked else "",
        ),
        _card("Processes", f"{alive:,}", "serve requests and run the jobs", "system", "" if alive else "bad"),
    ]  # fmt: skip
