"""The list of orders with search and filters, its export, and the page of one order."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dates import day
from cuota.core.desk.role import Action
from cuota.core.desk.sort import SORT_WORDS
from cuota.db.desk import orders as listing
from cuota.db.desk.orders import ListedOrder
from cuota.web.pages.desk.order_search import VIEWS, OrderFilters, asked_of, read_filters
from cuota.web.pages.desk.order_view import order_values
from cuota.web.pages.desk.view import common, shown, sort_options, state_of, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 50


@allowed(Action.READ_ORDERS)
async def orders(request: Request, desk: Desk) -> Response:
    """List orders, 50 on a page, newest first."""
    filters = read_filters(request)
    found = await listing.page(
        service_of(request).context.pool, desk.merchant_id, asked_of(request, desk, filters), A_PAGE
    )
    values: PageContext = {
        **common(request, desk, "Orders", here=f"{PATH}/orders"),
        "filters": filters,
        "since": filters.since.isoformat() if filters.since else "",
        "until": filters.until.isoformat() if filters.until else "",
        "wrong": dict(filters.wrong),
        "views": [{"value": view.value, "label": label} for view, label in VIEWS.items()],
        "rows": [row_of(each) for each in found.orders],
        "next": filters.address(after=found.last) if found.last else None,
        "first": filters.address() if filters.after else None,
        "sorts": sort_options(SORT_WORDS),
        "most": listing.SCANNED if filters.q and filters.sort.by_amount else None,
        "export": filters.address(f"{PATH}/orders/export") if desk.may(Action.EXPORT_ORDERS) else None,
        "summary": _summary(filters, len(found.orders), more=found.last is not None),
    }
    return page(request, "desk/orders.html", values)


def _summary(filters: OrderFilters, count: int, *, more: bool) -> str:
    """Return a text with the number of rows and the filters."""
    what = VIEWS[filters.view].lower()
    parts = [f"“{filters.q}”"] if filters.q else []
    parts += [f"from {day(filters.since, year=True)}"] if filters.since else []
    parts += [f"to {day(filters.until, year=True)}"] if filters.until else []
    rows = "1 row" if count == 1 else f"{count} rows"
    return f"{rows}{' on this page' if more or filters.after else ''}: {', '.join([what, *parts])}"


def row_of(each: ListedOrder) -> PageContext:
    """Return the values of one row."""
    order = each.order
    return {
        "address": f"{PATH}/orders/{order.order_id}",
        "reference": each.reference or "no reference",
        "at": when(order.created_at),
        "name": name_of(each),
        "last4": each.last4,
        "state": state_of(order),
        "amount": shown(order, order.amount),
        "refunded": shown(order, order.refunded) if order.refunded else None,
    }


def name_of(each: ListedOrder) -> str:
    """Return the consumer's name from the plan, or else the name that the merchant sent."""
    payer = json.loads(each.payer) if each.payer else {}
    names = (payer.get("given_names") or each.given, payer.get("surname") or each.surname)
    return " ".join(filter(None, names))


@allowed(Action.READ_ORDERS)
async def order(request: Request, desk: Desk) -> Response:
    """Show one order: its money, its plan, its history, and the possible actions."""
    values = await order_values(request, desk, id_in_path(request, "order_id"))
    if values is None:
        return missing(request)
    return page(request, "desk/order.html", values)
