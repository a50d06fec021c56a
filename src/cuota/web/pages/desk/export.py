"""Exports the list of orders as CSV. The file contains personal data, so an export needs a fresh second factor and a reason."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.core.desk.sort import Sort
from cuota.core.instant import timestamp
from cuota.core.money import text_of
from cuota.db.desk import orders as listing
from cuota.db.desk.orders import ListedOrder
from cuota.flows.desk.record import AuditNote, record
from cuota.web.csv_text import rows_of, safe, stream
from cuota.web.pages.desk.order_search import VIEWS, asked_of, read_filters
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.view import common
from cuota.web.pages.desk.visit import PATH, Desk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

ORDERS_AT_ONCE = 200
# A small file is sent at once. A large file is sent slowly, about 1,600 rows a second, to leave time for the merchant's other
# requests.
UNPACED = 2000
REST = 9
COLUMNS = (
    "orderId", "merchantReference", "createdAt", "orderStatus", "paymentState", "currency", "amount", "captured", "voided",
    "refunded", "disputed", "consumerName", "consumerEmail", "consumerPhone", "cardLast4",
)  # fmt: skip
_EXPORT = f"{PATH}/orders/export"


@allowed(Action.READ_ORDERS, Action.EXPORT_ORDERS)
async def show(request: Request, desk: Desk) -> Response:
    """Ask for the reason, and for a fresh code."""
    return _page(request, desk, {})


def _page(request: Request, desk: Desk, errors: dict[str, str]) -> Response:
    filters = read_filters(request)
    what = [VIEWS[filters.view].lower()]
    what += [f"“{filters.q}”"] if filters.q else []
    what += [f"from {filters.since}"] if filters.since else []
    what += [f"to {filters.until}"] if filters.until else []
    shown: PageContext = {
        **common(request, desk, "Export orders", here=f"{PATH}/orders"),
        "what": ", ".join(what),
        "columns": COLUMNS,
        "address": filters.address(_EXPORT),
        "back": filters.address(),
        "asks_code": not desk.fresh,
        "download_script": True,
        "values": desk.form,
        "errors": errors,
    }
    return page(request, "desk/export.html", shown, status=400 if errors else 200)


@allowed(Action.READ_ORDERS, Action.EXPORT_ORDERS)
async def export(request: Request, desk: Desk) -> Response:
    """Send the file. The audit log gets an entry before the first row is read."""
    context, reason = service_of(request).context, desk.form.get("reason", "").strip()
    if not reason:
        return _page(request, desk, {"reason": "Say why, in a few words. The audit log keeps the reason."})
    if errors := await prove(request, desk):
        return _page(request, desk, errors)
    filters = read_filters(request)
    what = "Orders as CSV, continued" if filters.after else "Orders as CSV"
    note = AuditNote("orders.export", f"{what}: {filters.address()}", reason)
    await record(context, desk.merchant_id, desk.actor, note)
    # With `after`, the browser continues an interrupted download.
    asked = asked_of(request, desk, filters)
    if asked.sorts_matches:
        # The file has every match, not only the newest ones.
        asked = replace(asked, sort=Sort.NEWEST)

    async def pages() -> AsyncIterator[bytes]:
        yield rows_of([COLUMNS])
        following, sent = asked, 0
        while True:
            began = time.monotonic()
            found = await listing.page(context.pool, desk.merchant_id, following, ORDERS_AT_ONCE)
            rows = rows_of(map(_row, found.orders))
            took, sent = time.monotonic() - began, sent + len(found.orders)
            yield rows
            if found.last is None:
                return
            following = replace(asked, after=found.last)
            if sent > UNPACED:
                await asyncio.sleep(took * REST)

    # The script of the page uses this to show the progress, because ids are ordered by time.
    ends = [] if asked.sort.by_amount else await listing.ends(context.pool, desk.merchant_id)
    span = ends[::-1] if asked.sort is Sort.OLDEST else ends
    return await stream(request, pages(), "orders", {"X-Export-Ids": ",".join(map(str, span))})


def _row(each: ListedOrder) -> list[object]:
    order = each.order
    payer = json.loads(each.payer) if each.payer else {}
    names = payer.get("given_names") or each.given, payer.get("surname") or each.surname
    return [
        order.order_id, safe(each.reference), timestamp(order.created_at), order.status, order.payment_state, order.currency,
        text_of(order.amount), text_of(order.captured), text_of(order.voided), text_of(order.refunded),
        text_of(order.disputed + order.charged_back), safe(" ".join(filter(None, names))), safe(payer.get("email")),
        payer.get("phone") or "", each.last4 or "",
    ]  # fmt: skip
