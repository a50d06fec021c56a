"""Writes, reads and copies the calls in a merchant's request log."""

from __future__ import annotations

from dataclasses import astuple
from uuid import UUID

from cuota.core.order.id_bounds import BEYOND
from cuota.db.desk import api_requests
from cuota.db.desk.api_requests import ApiRequest, AskedRequests, NewApiRequest
from support.makers import Merchant


async def written(shop: Merchant, limit: int = 1000) -> list[ApiRequest]:
    """Write the queued calls. Return the merchant's calls, newest first."""
    log = shop.service.app.service.requests
    assert log is not None
    await log.flush()
    pool = shop.service.context.pool
    found, _ = await api_requests.page(pool, shop.merchant_id, BEYOND, AskedRequests(), limit)
    return found


def copy_of(call: ApiRequest, request_id: UUID) -> NewApiRequest:
    """Return a copy of the call with another id, for a test to write."""
    _, client_id, address, method, route, order_id, *others = astuple(call)
    return NewApiRequest(
        str(request_id), client_id, address, method, route, str(order_id) if order_id else None, *others
    )
