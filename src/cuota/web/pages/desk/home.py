"""The first page of the merchant's dashboard: recent figures and waiting work. Each figure links to its list."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import day
from cuota.core.desk.role import Action
from cuota.db.desk import approvals, figures
from cuota.db.desk.figures import NEWEST, OrderFigures, Waiting
from cuota.db.desk.webhooks import MOST_COUNTED
from cuota.db.payout import balance
from cuota.web.pages.desk.chart import HEIGHT, WIDTH, bars
from cuota.web.pages.desk.view import ZONE, common, day_of
from cuota.web.pages.desk.visit import PATH, Desk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_ORDERS = f"{PATH}/orders"
DAYS = 14


@allowed(Action.READ_ORDERS)
async def home(request: Request, desk: Desk) -> Response:
    """Show the figures."""
    context = service_of(request).context
    now = context.now()
    today = now.astimezone(ZoneInfo(ZONE)).replace(hour=0, minute=0, second=0, microsecond=0)
    found = await figures.orders(context.pool, desk.merchant_id, today, now)
    waits = await figures.waiting(context.pool, desk.merchant_id, context.now())
    cards = _order_cards(found, today)
    if desk.may(Action.READ_PAYOUTS):
        cards.append(await _deposit(request, desk, now))
    cards += _waiting_cards(desk, waits)
    asked = await approvals.count_waiting(context.pool, desk.merchant_id)
    if asked:
        cards.append(
            _card("To approve", f"{asked:,}", "requested by a colleague", f"{PATH}/approvals", "wait")
        )
    lead = f"{day(today.date(), year=True)}, New York time"
    shown = {
        **common(request, desk, desk.visit.session.merchant, here=PATH, lead=lead),
        "cards": cards,
        "chart": await _chart(request, desk, today),
        "partly": f"{NEWEST:,}" if found.read == NEWEST else None,
        "empty": found.read == 0,
    }
    return page(request, "desk/home.html", shown)


async def _chart(request: Request, desk: Desk, today: datetime) -> PageContext:
    """Return the chart of the last two weeks, with its table."""
    first = (today - timedelta(days=DAYS - 1)).replace(hour=0)
    pool = service_of(request).context.pool
    found = await figures.by_day(pool, desk.merchant_id, first, DAYS, ZONE)
    best = max(found, key=lambda each: each.amount)
    total = sum(each.amount for each in found)
    words = f"{money.shown(total)} approved in two weeks, the most on {day(best.day)}: {money.shown(best.amount)}."
    return {
        "bars": bars([each.amount for each in found]),
        "width": WIDTH,
        "height": HEIGHT,
        "words": words if total else "Nothing was approved in these two weeks.",
        "first": day(found[0].day),
        "last": day(found[-1].day),
        "any": total > 0,
        "rows": [
            {
                "day": day(each.day),
                "approved": f"{each.approved:,}",
                "declined": f"{each.declined:,}",
                "amount": money.shown(each.amount),
                "address": f"{_ORDERS}?from={each.day}&to={each.day}",
            }
            for each in reversed(found)
        ],
    }


def _orders(count: int) -> str:
    return "1 order" if count == 1 else f"{count:,} orders"


def _card(label: str, value: str, more: str, address: str | None, kind: str = "") -> PageContext:
    return {"label": label, "value": value, "more": more, "address": address, "kind": kind}


def _order_cards(found: OrderFigures, today: datetime) -> list[PageContext]:
    decided = found.approved + found.declined
    rate = f"{100 * found.approved / decided:.0f} %" if decided else "none yet"
    soon = f"{found.expiring} within 3 days of the end" if found.expiring else "none ends within 3 days"
    since = f"from={today:%Y-%m-%d}"
    return [
        _card(
            "Orders today", f"{found.today:,}",
            f"{found.approved_today:,} approved, {money.shown(found.amount_today)}", f"{_ORDERS}?{since}",
        ),
        _card("Approval rate", rate, f"{found.declined:,} declined in 7 days", f"{_ORDERS}?view=declined"),
        _card(
            "To capture", money.shown(found.to_capture_amount), f"{_orders(found.to_capture)}; {soon}",
            f"{_ORDERS}?view=to-capture&sort=oldest", "wait" if found.expiring else "",
        ),
        _card(
            "Refunds", money.shown(found.refunded_amount), f"of {_orders(found.refunded)} of the last 7 days",
            f"{_ORDERS}?view=refunded",
        ),
    ]  # fmt: skip


async def _deposit(request: Request, desk: Desk, now: datetime) -> PageContext:
    found = await balance.read(service_of(request).context.pool, desk.merchant_id, now)
    if found.next_payout is None:
        debt = f"You owe {money.shown(found.debt)}." if found.debt else "Nothing would be paid now."
        return _card("Next deposit", "None", debt, f"{PATH}/payouts", "wait" if found.debt else "")
    coming = found.next_payout
    return _card(
        "Next deposit", money.shown(coming.amount), f"arrives {day(coming.arrival_date)}", f"{PATH}/payouts"
    )


def _waiting_cards(desk: Desk, waits: Waiting) -> list[PageContext]:
    deadline = f"first answer due {day_of(waits.respond_by)}" if waits.respond_by else "nothing to answer"
    failing = "retried automatically" if waits.webhooks else "all were delivered"
    if waits.parked:
        failing = f"{_counted(waits.parked)} more parked: send them again"
    webhooks = f"{PATH}/webhooks" if desk.may(Action.READ_WEBHOOKS) else None
    return [
        _card(
            "Disputes to answer",
            f"{waits.disputes:,}",
            deadline,
            f"{PATH}/disputes?view=open" if desk.may(Action.READ_DISPUTES) else None,
            "bad" if waits.disputes else "",
        ),
        _card(
            "Failing webhooks",
            _counted(waits.webhooks),
            failing,
            webhooks,
            "bad" if waits.webhooks or waits.parked else "",
        ),
    ]


def _counted(deliveries: int) -> str:
    return f"{deliveries:,}{' or more' if deliveries >= MOST_COUNTED else ''}"
