"""The request log in the merchant's dashboard: the list of calls, and one call with both masked bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from cuota.core.credential import credential_name
from cuota.core.dates import exact
from cuota.core.desk.notice import ZONE
from cuota.core.desk.role import Action
from cuota.core.order.id_bounds import BEYOND
from cuota.core.refusal import Code, Refused
from cuota.db.desk import api_requests
from cuota.db.desk.api_requests import ApiRequest, AskedRequests
from cuota.db.merchant import credentials
from cuota.db.merchant.credentials import Credential
from cuota.web.ids import guid
from cuota.web.pages.desk.view import common
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.server.route import Route
from cuota.web.service import service_of

# Revoked credentials that the filter offers. A merchant may have revoked thousands.
MOST_REVOKED = 30
A_PAGE = 50
REQUESTS = f"{PATH}/requests"
CLASSES = (("", "Every status"), ("2", "Done (2xx)"), ("4", "Refused (4xx)"), ("5", "Failed (5xx)"))
_NEWEST = BEYOND
_PARAMETER = re.compile(r"_([a-z])(?=[a-z_]*\})")


@dataclass(frozen=True, slots=True)
class RequestFilters:
    """The filters as they were typed. `q` is the id of an order or of a request."""

    q: str = ""
    status: str = ""
    route: str = ""
    client_id: str = ""

    def query(self, **more: str) -> str:
        """Return the query of an address with these filters."""
        given = {
            "q": self.q,
            "status": self.status,
            "route": self.route,
            "credential": self.client_id,
            **more,
        }
        return urlencode({name: value for name, value in given.items() if value})


def _read_filters(request: Request) -> RequestFilters:
    given = request.query_params
    status = given.get("status", "")
    return RequestFilters(
        given.get("q", "").replace("\0", "").strip()[:100],
        status if status in dict(CLASSES) else "",
        given.get("route", "")[:200].replace("\0", ""),
        given.get("credential", "")[:100].replace("\0", ""),
    )


def _id(text: str) -> UUID | None:
    try:
        return guid(text)
    except Refused:
        return None


def _routes(request: Request) -> list[tuple[str, str]]:
    """Return the templates of the API's paths, each as it is stored and as it is shown."""
    rows: tuple[Route, ...] = request.scope["app"].routes.rows
    return [(path, _path(path)) for path in sorted({row.path for row in rows if row.area.needs_token})]


def _path(template: str) -> str:
    """Return the template of a path with the names of the API reference: `/order/{orderId}`."""
    return _PARAMETER.sub(lambda found: found[1].upper(), template)


@allowed(Action.READ_REQUESTS)
async def listed(request: Request, desk: Desk) -> Response:
    """List the API calls, newest first, filtered by status, path, credential, order or request."""
    pool, filters = service_of(request).context.pool, _read_filters(request)
    about = _id(filters.q) if filters.q else None
    before = _id(request.query_params.get("before", "")) or _NEWEST
    if about is not None and await api_requests.read(pool, desk.merchant_id, about) is not None:
        return await _one(request, desk, about)
    found: list[ApiRequest] = []
    last = None
    if about is not None or not filters.q:
        asked = AskedRequests(
            about,
            int(filters.status) if filters.status else None,
            filters.route or None,
            filters.client_id or None,
        )
        found, last = await api_requests.page(pool, desk.merchant_id, before, asked, A_PAGE)
    held = await _credentials(request, desk)
    named = _names(held)
    any_filter = bool(filters.query())
    shown: PageContext = {
        **common(request, desk, "API requests", here=REQUESTS),
        "filters": filters,
        "wrong": "Enter the id of an order or of a request, such as the header X-Request-Id of an answer."
        if filters.q and about is None
        else None,
        "classes": CLASSES,
        "routes": _routes(request),
        "credentials": sorted(
            _names(_offered(held, filters.client_id)).items(), key=lambda each: each[1].lower()
        ),
        "rows": [_row(each, named) for each in found],
        "any": any_filter,
        "is_on": service_of(request).settings.request_log,
        "next": f"{REQUESTS}?{filters.query(before=str(last))}" if last else None,
        "first": f"{REQUESTS}?{filters.query()}" if "before" in request.query_params else None,
    }
    return page(request, "desk/requests.html", shown)


async def _credentials(request: Request, desk: Desk) -> list[Credential]:
    """Return all credentials, including revoked ones."""
    return await credentials.read_of_merchant(service_of(request).context.pool, desk.merchant_id)


def _names(held: list[Credential]) -> dict[str, str]:
    """Return the name of each credential by its client id."""
    return {each.client_id: credential_name(each.name) for each in held}


def _offered(held: list[Credential], chosen: str) -> list[Credential]:
    """Return the credentials by which the list can be filtered: those in force, the chosen one, and the last revoked ones."""
    kept = [each for each in held if each.revoked_at is None or each.client_id == chosen]
    revoked = [each for each in held if each.revoked_at is not None]
    revoked.sort(key=lambda each: each.revoked_at or each.created_at)
    return [*kept, *revoked[-MOST_REVOKED:]]


def _state(each: ApiRequest) -> PageContext:
    kind = "done" if each.status < 400 else "wait" if each.status < 500 else "bad"
    return {"word": str(each.status), "kind": kind}


def _row(each: ApiRequest, named: dict[str, str]) -> PageContext:
    return {
        "address": f"{REQUESTS}/{each.request_id}",
        "at": exact(each.at.astimezone(ZONE)),
        "call": f"{each.method} {_path(each.route)}",
        "state": _state(each),
        "code": each.code,
        "ms": f"{each.ms:,.0f} ms",
        "credential": named.get(each.client_id, each.client_id),
    }


@allowed(Action.READ_REQUESTS)
async def one(request: Request, desk: Desk) -> Response:
    """Show one call: its facts, both bodies side by side, and advice about an error."""
    return await _one(request, desk, id_in_path(request, "request_id"))


async def _one(request: Request, desk: Desk, request_id: UUID) -> Response:
    found = await api_requests.read(service_of(request).context.pool, desk.merchant_id, request_id)
    if found is None:
        return missing(request)
    named = _names(await _credentials(request, desk))
    shown: PageContext = {
        **common(request, desk, f"{found.method} {_path(found.route)}", here=REQUESTS),
        "back": REQUESTS,
        "state": _state(found),
        "facts": _facts(found, named),
        "order": f"{PATH}/orders/{found.order_id}" if found.order_id else None,
        "order_id": str(found.order_id) if found.order_id else None,
        "about_order": f"{REQUESTS}?q={found.order_id}" if found.order_id else None,
        "bodies": [("Request", _pretty(found.request)), ("Answer", _pretty(found.response))],
        "query": _pretty(found.query),
        "advice": _advice(found),
        "docs": f"/docs#{found.code}" if found.code in set(Code) else "/docs",
    }
    return page(request, "desk/request.html", shown)


def _facts(found: ApiRequest, named: dict[str, str]) -> list[tuple[str, str]]:
    return [
        ("Time", exact(found.at.astimezone(ZONE))),
        ("Credential", f"{named.get(found.client_id, 'unknown')} ({found.client_id})"),
        ("IP address", found.address or "unknown"),
        ("Answered in", f"{found.ms:,.1f} ms"),
        ("Idempotency-Key", "sent" if found.keyed else "not sent"),
        ("Request id", str(found.request_id)),
    ]


def _pretty(text: str | None) -> str | None:
    """Return a stored JSON text with line breaks. A note about a body stays unchanged."""
    if text is None or text.startswith("("):
        return text
    return msgspec.json.format(text, indent=2)


def _advice(found: ApiRequest) -> str | None:
    """Return advice about a call that did not succeed."""
    if found.status == 499:
        return "Your server closed the connection before the answer, and the call may have been carried out. Send it again with the same reference or Idempotency-Key: nothing is applied twice."
    if found.status >= 500:
        return "The service could not answer. Send the call again with the same reference or Idempotency-Key: nothing is applied twice."
    if found.status >= 400:
        words = HTTPStatus(found.status).phrase if found.status in set(HTTPStatus) else "refused"
        return f"The call was refused ({words.lower()}), and nothing was changed. The answer says what to correct."
    return None
