"""Reads the filters of the list of orders from the page's address, and writes them into addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from starlette.requests import Request

from cuota.core.desk.sort import SORT_WORDS, Sort, read_sort
from cuota.core.desk.terms import asked_terms
from cuota.core.instant import read_day
from cuota.core.order.id_bounds import id_bounds
from cuota.core.refusal import Refused
from cuota.db.desk.orders import Asked, View
from cuota.flows.desk.index_orders import hashed
from cuota.web.ids import guid
from cuota.web.pages.desk.view import ZONE
from cuota.web.pages.desk.visit import PATH, Desk
from cuota.web.service import service_of

VIEWS = {
    View.ALL: "All orders",
    View.TO_CAPTURE: "To capture",
    View.APPROVED: "Approved",
    View.REFUNDED: "Refunded",
    View.DISPUTED: "Disputed",
    View.IN_CHECKOUT: "In checkout",
    View.DECLINED: "Declined",
    View.ABANDONED: "Abandoned",
}
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class OrderFilters:
    """The filters as they were typed. `wrong` contains each wrong date by the name of its field."""

    q: str = ""
    view: View = View.ALL
    since: date | None = None
    until: date | None = None
    sort: Sort = Sort.NEWEST
    after: UUID | None = None
    wrong: tuple[tuple[str, str], ...] = ()

    @property
    def any(self) -> bool:
        """Whether any filter is set."""
        return bool(self.q or self.since or self.until) or self.view is not View.ALL

    def address(self, path: str = f"{PATH}/orders", **changed: object) -> str:
        """Return the address of the list with these filters, and with these changes."""
        new = replace(self, **{"after": None, **changed})  # type: ignore[arg-type]
        query = {
            "q": new.q,
            "view": "" if new.view is View.ALL else new.view.value,
            "from": new.since.isoformat() if new.since else "",
            "to": new.until.isoformat() if new.until else "",
            "sort": "" if new.sort is Sort.NEWEST else new.sort.value,
            "after": str(new.after) if new.after else "",
        }
        encoded = urlencode({name: value for name, value in query.items() if value})
        return f"{path}?{encoded}" if encoded else path


def read_filters(request: Request) -> OrderFilters:
    """Read the filters. A value that cannot be read is left out. If a person typed the value, `wrong` names it."""
    given = request.query_params
    q = given.get("q", "").replace("\0", "").strip()[:_LONGEST]
    view = given.get("view", "")
    dates, wrong = {}, []
    for name in ("from", "to"):
        text = given.get(name, "").strip()
        dates[name] = read_day(text)
        if text and dates[name] is None:
            wrong.append((name, "Enter a date such as 2026-11-23."))
    try:
        after = guid(given["after"]) if "after" in given else None
    except Refused:
        after = None
    known = View(view) if view in set(View) else View.ALL
    sort = read_sort(given.get("sort", ""), SORT_WORDS)
    return OrderFilters(q, known, dates["from"], dates["to"], sort, after, tuple(wrong))


def asked_of(request: Request, desk: Desk, filters: OrderFilters) -> Asked:
    """Return the database query for these filters."""
    since, until = _begin(filters.since), _begin(filters.until, timedelta(days=1))
    # The ids of the sandbox do not follow its clock.
    bounds = id_bounds(*((None, None) if service_of(request).settings.sandbox else (since, until)))
    asked = Asked(filters.view, since, until, bounds, filters.sort, filters.after)
    if not filters.q:
        return asked
    vault = service_of(request).context.vault
    terms = tuple(hashed(vault, desk.merchant_id, term) for term in asked_terms(filters.q))
    try:
        order_id = guid(filters.q)
    except Refused:
        order_id = None
    return replace(asked, terms=terms, reference=filters.q, id=order_id)


def _begin(day: date | None, later: timedelta = timedelta(0)) -> datetime | None:
    """Return the first moment of a day in the dashboard's time zone."""
    if day is None or day >= date.max - later:
        return None
    there = day + later
    return datetime(there.year, there.month, there.day, tzinfo=ZoneInfo(ZONE))
