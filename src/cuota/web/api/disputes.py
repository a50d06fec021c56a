"""`/disputes`: lists disputes, shows one with its statements, and sends their files."""

from __future__ import annotations

import re
from urllib.parse import quote
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dispute.dispute import DisputeStatus
from cuota.core.refusal import Code, Refused
from cuota.db.dispute import listing
from cuota.db.order.documents import encode
from cuota.flows.dispute.evidence import read_file
from cuota.flows.dispute.read_dispute import dispute_not_found, order_of
from cuota.flows.dispute.show_dispute import show_dispute
from cuota.web.api import cursor
from cuota.web.api.dispute_json import dispute_detail, dispute_json
from cuota.web.api.query import parameters
from cuota.web.fields import Reader, WrongField
from cuota.web.service import merchant_of, service_of

MOST, USUAL = 100, 20
# A consumer's text and files are personal data: no cache may store them.
NO_STORE = {"Cache-Control": "no-store"}
_LIMIT = re.compile(r"[1-9][0-9]?|100", re.ASCII)
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_FILE = re.compile(rf"({_GUID.pattern})-([1-9])", re.ASCII | re.IGNORECASE)
_ODD = re.compile(r"[^A-Za-z0-9 ._-]")


async def disputes(request: Request) -> Response:
    """List the merchant's disputes, newest first."""
    merchant = await merchant_of(request)
    given = parameters(request, "status", "orderId", "limit", "after")
    reader = Reader(lenient=False)
    statuses: tuple[DisputeStatus, ...] = reader.read(given, "status", _statuses) or ()
    order_id: UUID | None = reader.read(given, "orderId", _order_id)
    limit = reader.read(given, "limit", _limit) or USUAL
    bound = cursor.binding("disputes", merchant.merchant_id, sorted(statuses), order_id)
    below = reader.read(given, "after", lambda text: cursor.read_id(text, bound)) or listing.NEWEST
    reader.finish()
    pool = service_of(request).context.pool
    found = await listing.page(pool, merchant.merchant_id, below, statuses, order_id, limit + 1)
    shown, more = found[:limit], len(found) > limit
    following = cursor.write_id(bound, shown[-1].dispute.dispute_id) if more else None
    data = [dispute_json(each.order_id, each.dispute, each.payment) for each in shown]
    content = {"data": data, "hasMore": more, "nextCursor": following}
    return Response(encode(content), media_type="application/json")


async def dispute(request: Request) -> Response:
    """Show one dispute with its statements."""
    merchant = await merchant_of(request)
    dispute_id, context = dispute_id_of(request), service_of(request).context
    content = dispute_detail(await show_dispute(context, merchant.merchant_id, dispute_id))
    return Response(encode(content), headers=NO_STORE, media_type="application/json")


async def dispute_file(request: Request) -> Response:
    """Send one file of a statement as an attachment, so that a browser saves it instead of showing it."""
    merchant = await merchant_of(request)
    dispute_id, context = dispute_id_of(request), service_of(request).context
    await order_of(context.pool, merchant.merchant_id, dispute_id)
    named = _FILE.fullmatch(request.path_params["file_id"])
    found = None
    if named is not None:
        evidence_id, number = UUID(named[1]), int(named[3])
        found = await read_file(context, merchant.merchant_id, dispute_id, evidence_id, number)
    if found is None:
        raise Refused(Code.NOT_FOUND, "There is no such file. GET /disputes/{disputeId} lists the files.")
    _, file = found
    headers = {
        **NO_STORE,
        "Content-Disposition": _attachment(file.name),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(file.content, headers=headers, media_type=file.media_type)


def dispute_id_of(request: Request) -> UUID:
    """Return the dispute's id in the path. Raises Refused(dispute_not_found) for a text that is not an id."""
    text = request.path_params["dispute_id"]
    if not _GUID.fullmatch(text):
        raise dispute_not_found()
    return UUID(text)


def _attachment(name: str) -> str:
    """Return a Content-Disposition with the name in ASCII, and in full for programs that read RFC 8187."""
    plain = _ODD.sub("_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _limit(text: str) -> int:
    if not _LIMIT.fullmatch(text):
        raise WrongField("invalid", f"must be a whole number from 1 to {MOST}")
    return int(text)


def _order_id(text: str) -> UUID:
    if not _GUID.fullmatch(text):
        raise WrongField("invalid", "must be the id of an order")
    return UUID(text)


def _statuses(text: str) -> tuple[DisputeStatus, ...]:
    try:
        return tuple(dict.fromkeys(DisputeStatus(name) for name in text.split(",")))
    except ValueError:
        listed = ", ".join(DisputeStatus)
        raise WrongField("invalid", f"must be one of {listed}, or several separated by commas") from None
