"""`GET /orders`: lists a merchant's orders in pages, newest first, filtered by reference, status and creation time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from datetime import datetime
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.instant import BadInstant, read_instant
from cuota.core.order.id_bounds import BEYOND, FIRST, id_bounds
from cuota.core.order.order import Status
from cuota.db.order import listing as order_list
from cuota.db.order.documents import encode
from cuota.db.order.listing import Filters
from cuota.flows.order import show_order
from cuota.web.api.query import parameters
from cuota.web.fields import Reader, WrongField, reference
from cuota.web.service import merchant_of, service_of

MOST, USUAL = 100, 20
PARAMETERS = ("merchantReference", "status", "createdFrom", "createdTo", "limit", "cursor")
_LIMIT = re.compile(r"[1-9][0-9]?|100", re.ASCII)
_ZONE_AFTER_SPACE = re.compile(r" ([0-9]{2}:?[0-9]{2})$", re.ASCII)
# The length in bytes of the digest in a cursor.
_BOUND = 8


async def orders(request: Request) -> Response:
    """Return one page. `nextCursor` with the same filters gets the next page."""
    merchant = await merchant_of(request)
    service = service_of(request)
    given = parameters(request, *PARAMETERS)
    reader = Reader(lenient=False)
    limit = reader.read(given, "limit", _limit) or USUAL
    filters = Filters(
        reader.read(given, "merchantReference", reference(0)),
        reader.read(given, "status", _statuses) or (),
        reader.read(given, "createdFrom", _instant),
        reader.read(given, "createdTo", _instant),
    )
    bound = _binding(merchant.merchant_id, filters)
    before = reader.read(given, "cursor", lambda text: _position(text, bound)) or BEYOND
    reader.finish()
    floor = FIRST
    if not service.settings.sandbox:
        # Compare ids as well as creation times, because ids are indexed.
        floor, high = id_bounds(filters.created_from, filters.created_to)
        before = min(before, high)
    page = await order_list.page(
        service.context.pool.entry, merchant.merchant_id, filters, before, floor, limit
    )
    cursor = _cursor(page.last, bound) if page.last else None
    data = b",".join(show_order.record(record) for record in page.records)
    more = encode({"hasMore": cursor is not None, "nextCursor": cursor})
    return Response(b'{"data":[' + data + b"]," + more[1:], media_type="application/json")


def _limit(text: str) -> int:
    if not _LIMIT.fullmatch(text):
        raise WrongField("invalid", f"must be a whole number from 1 to {MOST}")
    return int(text)


def _statuses(text: str) -> tuple[Status, ...]:
    try:
        return tuple(dict.fromkeys(Status(name) for name in text.split(",")))
    except ValueError:
        raise WrongField(
            "invalid", f"must be one of {', '.join(Status)}, or several separated by commas"
        ) from None


def _instant(text: str) -> datetime:
    # A plus sign that was not encoded arrives as a space.
    text = _ZONE_AFTER_SPACE.sub(r"+\1", text)
    try:
        found = read_instant(text).instant
    except BadInstant:
        found = None
    if found is None:
        raise WrongField(
            "invalid", "must be a date (2026-11-21, in UTC) or a time with its zone (2026-11-21T09:30:00Z)"
        )
    return found


def _binding(merchant_id: UUID, filters: Filters) -> bytes:
    """Return a digest of the merchant and the filters. A cursor contains it, so that it works only with these.

    The page size is not part of the digest, so it may change from page to page.
    """
    times = [at and at.isoformat() for at in (filters.created_from, filters.created_to)]
    named = encode([merchant_id, filters.reference, sorted(filters.statuses), times])
    return hashlib.sha256(named).digest()[:_BOUND]


def _cursor(last: UUID, bound: bytes) -> str:
    return base64.urlsafe_b64encode(bound + last.bytes).decode()


def _position(text: str, bound: bytes) -> UUID:
    try:
        decoded = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        decoded = b""
    if len(decoded) != _BOUND + 16 or decoded[:_BOUND] != bound:
        message = "is not a cursor of this list: send nextCursor unchanged, with the same filters"
        raise WrongField("invalid", message)
    return UUID(bytes=decoded[_BOUND:])
