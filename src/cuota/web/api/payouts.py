"""`/payouts`: lists payouts, shows one with its totals, and lists its settlement lines.

The answer is JSON, or CSV with all entries.
"""

from __future__ import annotations

import re
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.payout.payout import Payout, PayoutStatus
from cuota.core.refusal import Code, Refused
from cuota.db.order.documents import encode
from cuota.db.payout import listing
from cuota.web import payout_csv
from cuota.web.api import cursor
from cuota.web.api.accepted import CSV_PARAMETERS, wants_csv
from cuota.web.api.payout_json import PayoutMembers, line_json, payout_detail, payout_json
from cuota.web.api.query import parameters
from cuota.web.fields import Reader, WrongField
from cuota.web.service import merchant_of, service_of

MOST, USUAL = 100, 20
_LIMIT = re.compile(r"[1-9][0-9]?|100", re.ASCII)
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_VARY = {"Vary": "Accept"}


async def payouts(request: Request) -> Response:
    """List the merchant's payouts, newest first."""
    merchant = await merchant_of(request)
    pool = service_of(request).context.pool
    given = parameters(request, "status", "limit", "after", *CSV_PARAMETERS)
    reader = Reader(lenient=False)
    statuses: tuple[PayoutStatus, ...] = reader.read(given, "status", _statuses) or ()
    csv = wants_csv(request, reader, given)
    limit = reader.read(given, "limit", _limit) or USUAL
    bound = cursor.binding("payouts", merchant.merchant_id, sorted(statuses))
    below = reader.read(given, "after", lambda text: cursor.read(text, bound)) or listing.NEWEST
    reader.finish()
    if csv:
        return await payout_csv.payouts(request, pool, merchant.merchant_id, statuses)
    found = await listing.payouts(pool, merchant.merchant_id, min(below, listing.NEWEST), statuses, limit + 1)
    shown, more = found[:limit], len(found) > limit
    following = cursor.write(bound, shown[-1].number) if more else None
    return _page([payout_json(each) for each in shown], following)


async def payout(request: Request) -> Response:
    """Show one payout with the totals of its lines by type."""
    merchant = await merchant_of(request)
    found = await _find(request, merchant.merchant_id)
    pool = service_of(request).context.pool
    totals = await listing.totals(pool, merchant.merchant_id, [found.payout_id])
    return Response(encode(payout_detail(found, totals[found.payout_id])), media_type="application/json")


async def payout_lines(request: Request) -> Response:
    """List the settlement lines of one payout, in the order of their numbers."""
    merchant = await merchant_of(request)
    pool = service_of(request).context.pool
    found = await _find(request, merchant.merchant_id)
    given = parameters(request, "limit", "after", *CSV_PARAMETERS)
    reader = Reader(lenient=False)
    csv = wants_csv(request, reader, given)
    limit = reader.read(given, "limit", _limit) or USUAL
    bound = cursor.binding("lines", merchant.merchant_id, found.payout_id)
    after = reader.read(given, "after", lambda text: cursor.read(text, bound)) or found.first_line - 1
    reader.finish()
    if csv:
        return await payout_csv.lines(request, pool, found)
    lines = await listing.lines(pool, merchant.merchant_id, after, found.last_line, limit + 1)
    shown, more = lines[:limit], len(lines) > limit
    following = cursor.write(bound, shown[-1].line.number) if more else None
    return _page([line_json(each.line) for each in shown], following)


def _page(data: list[PayoutMembers], following: str | None) -> Response:
    content = {"data": data, "hasMore": following is not None, "nextCursor": following}
    return Response(encode(content), headers=_VARY, media_type="application/json")


async def _find(request: Request, merchant_id: UUID) -> Payout:
    """Return the payout in the path. Raises Refused(not_found), also for another merchant's payout."""
    text = request.path_params["payout_id"]
    found = None
    if _GUID.fullmatch(text):
        found = await listing.payout(service_of(request).context.pool, merchant_id, UUID(text))
    if found is None:
        raise Refused(Code.NOT_FOUND, "There is no such payout. GET /payouts lists yours.")
    return found


def _limit(text: str) -> int:
    if not _LIMIT.fullmatch(text):
        raise WrongField("invalid", f"must be a whole number from 1 to {MOST}")
    return int(text)


def _statuses(text: str) -> tuple[PayoutStatus, ...]:
    try:
        return tuple(dict.fromkeys(PayoutStatus(name) for name in text.split(",")))
    except ValueError:
        listed = ", ".join(PayoutStatus)
        raise WrongField("invalid", f"must be one of {listed}, or several separated by commas") from None
