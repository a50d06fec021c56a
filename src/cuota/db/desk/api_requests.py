"""The request log of a merchant: its API calls, newest first by the request's id, which is a UUIDv7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from cuota.db.apart import late_of
from cuota.db.session import Session

# A page reads at most this many calls, however few of them match, and then says where the next page begins.
SCANNED = 5000
FORGOTTEN_AT_ONCE = 5000
_COLUMNS = "request_id, client_id, address, method, route, order_id, status, code, ms, keyed, query, request, response"
_ADD = """SELECT log_api_requests($1, $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::smallint[],
    $9::text[], $10::real[], $11::boolean[], $12::text[], $13::text[], $14::text[])"""
_PAGE = """
WITH scanned AS (
    SELECT request_id, status, route, client_id FROM api_requests WHERE merchant_id = $1 AND request_id < $2
        ORDER BY request_id DESC LIMIT $3
)
SELECT ARRAY(SELECT request_id FROM scanned WHERE ($5::int IS NULL OR status / 100 = $5) AND ($6::text IS NULL OR route = $6)
        AND ($7::text IS NULL OR client_id = $7) ORDER BY request_id DESC LIMIT $4) AS fitting,
    (SELECT count(*) FROM scanned) AS scanned, (SELECT request_id FROM scanned ORDER BY request_id LIMIT 1) AS last
"""
_PAGE_OF_ORDER = _PAGE.replace("request_id < $2", "request_id < $2 AND order_id = $8")
_ROWS = f"SELECT {_COLUMNS} FROM api_requests WHERE merchant_id = $1 AND request_id = ANY ($2::uuid[])"
_READ = f"SELECT {_COLUMNS} FROM api_requests WHERE merchant_id = $1 AND request_id = $2"
_MOVES = """SELECT client_id, address, route, status, query, request FROM api_requests
    WHERE merchant_id = $1 AND order_id = $2 AND status = 200 AND method = 'POST' ORDER BY request_id LIMIT $3"""
_MERCHANTS = "SELECT DISTINCT merchant_id FROM desk_people"
_FORGET = """DELETE FROM api_requests WHERE merchant_id = $1 AND request_id IN (SELECT request_id FROM api_requests
    WHERE merchant_id = $1 AND request_id < $2 ORDER BY request_id LIMIT $3) RETURNING 1"""
_FORGET_ORDERS = "DELETE FROM api_requests WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[])"


class NewApiRequest(NamedTuple):
    """A call to write: the columns in their order. The ids are the original texts of UUIDs, which are never parsed."""

    request_id: str
    client_id: str
    address: str
    method: str
    route: str
    order_id: str | None
    status: int
    code: str | None
    ms: float
    keyed: bool
    query: str | None
    request: str | None
    response: str | None


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One call. `ms` is the time from the request's header to the response; `keyed`: the request had an Idempotency-Key.

    `query`, `request` and `response` are masked JSON texts (`core/wire/log_mask.py`), or None. `code` is the code of a refusal.
    """

    request_id: UUID
    client_id: str
    address: str
    method: str
    route: str
    order_id: UUID | None
    status: int
    code: str | None
    ms: float
    keyed: bool
    query: str | None
    request: str | None
    response: str | None

    @property
    def at(self) -> datetime:
        """The time of the call by the real clock: the first 48 bits of the id."""
        return datetime.fromtimestamp((self.request_id.int >> 80) / 1000, UTC)


@dataclass(frozen=True, slots=True)
class AskedRequests:
    """The filters of the list. None applies no filter. `status` is a class: 2, 4 or 5."""

    order_id: UUID | None = None
    status: int | None = None
    route: str | None = None
    client_id: str | None = None

    @property
    def scans(self) -> bool:
        """True if the statement may read calls that do not match."""
        return bool(self.status or self.route or self.client_id)


@dataclass(frozen=True, slots=True)
class MadeMove:
    """A call that moved an order's money, or previewed the movement: the credential, the IP address, and the request."""

    client_id: str
    address: str
    route: str
    query: str | None
    request: str | None


def first_id(at: datetime) -> UUID:
    """Return the smallest id of a request that came at this time or later."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


async def add(session: Session, merchant_id: UUID, calls: Sequence[NewApiRequest]) -> None:
    """Write calls of one merchant. Calls that are already stored stay unchanged."""
    await session.fetch(_ADD, merchant_id, *zip(*calls, strict=True))


async def page(
    session: Session, merchant_id: UUID, before: UUID, asked: AskedRequests, limit: int
) -> tuple[list[ApiRequest], UUID | None]:
    """Return at most `limit` calls with an id below `before`, newest first, and the id where the next page begins, or None at the end."""
    scan = SCANNED if asked.scans else limit + 1
    values = merchant_id, before, scan, limit + 1, asked.status, asked.route, asked.client_id
    if asked.order_id is None:
        row = await session.fetchrow(_PAGE, *values)
    else:
        row = await session.fetchrow(_PAGE_OF_ORDER, *values, asked.order_id)
    assert row is not None
    fitting: list[UUID] = row["fitting"]
    last = row["last"] if row["scanned"] == scan else None
    if len(fitting) > limit:
        fitting = fitting[:limit]
        last = fitting[-1]
    rows = await session.fetch(_ROWS, merchant_id, fitting) if fitting else []
    found = sorted(map(_request, rows), key=lambda each: each.request_id, reverse=True)
    return found, last


async def read(session: Session, merchant_id: UUID, request_id: UUID) -> ApiRequest | None:
    """Return one call, or None."""
    row = await session.fetchrow(_READ, merchant_id, request_id)
    return None if row is None else _request(row)


async def moves_of(session: Session, merchant_id: UUID, order_id: UUID, limit: int) -> list[MadeMove]:
    """Return the POST calls about an order that were answered with 200, oldest first."""
    rows = await session.fetch(_MOVES, merchant_id, order_id, limit)
    return [
        MadeMove(row["client_id"], row["address"], row["route"], row["query"], row["request"]) for row in rows
    ]


async def forget(session: Session, before: datetime) -> int:
    """Delete calls that are older than this time, at most FORGOTTEN_AT_ONCE of each merchant. Return how many were deleted."""

    async def forget_some(merchant_id: UUID) -> int:
        return len(await session.fetch(_FORGET, merchant_id, first_id(before), FORGOTTEN_AT_ONCE))

    merchants = [row["merchant_id"] for row in await session.fetch(_MERCHANTS)]
    return await late_of(session, _FORGET).each("deletion of the request log", merchants, forget_some)


async def forget_orders(session: Session, merchant_id: UUID, order_ids: list[UUID]) -> None:
    """Delete the calls about these orders."""
    await session.fetch(_FORGET_ORDERS, merchant_id, order_ids)


def _request(row: Any) -> ApiRequest:
    return ApiRequest(*(row[name] for name in _COLUMNS.split(", ")))
