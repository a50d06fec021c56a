"""Finds which credential and IP address moved an order's money through the API. The request log has this data for 30 days."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from starlette.requests import Request

from cuota.core.credential import credential_name
from cuota.core.order.movement import MovementKind
from cuota.db.desk import api_requests
from cuota.db.desk.api_requests import MadeMove
from cuota.db.merchant import credentials
from cuota.web.pages.desk.visit import Desk
from cuota.web.service import service_of

_MOST = 500
# The key of a movement: its kind, and the merchant's reference.
MoveKey = tuple[str, str]


async def moved_by(request: Request, desk: Desk, order_id: UUID) -> dict[MoveKey, str]:
    """Return a text about the actor for each movement of an order through the API."""
    pool = service_of(request).context.pool
    made = await api_requests.moves_of(pool, desk.merchant_id, order_id, _MOST)
    held = await credentials.read_of_merchant(pool, desk.merchant_id) if made else []
    named = {each.client_id: credential_name(each.name) for each in held}
    found: dict[MoveKey, str] = {}
    for each in made:
        # A repeated call gets the response of the first movement.
        if (key := _key(each)) is not None and key not in found:
            place = f", from {each.address}" if each.address else ""
            found[key] = f"by the API credential {named.get(each.client_id, each.client_id)}{place}"
    return found


def _key(each: MadeMove) -> MoveKey | None:
    kind = each.route.rpartition("/")[2]
    if kind not in set(MovementKind) or _object(each.query).get("dryRun") in {"true", "1"}:
        return None
    body = _object(each.request)
    reference = body.get("merchantRefundReference") or body.get("merchantReference")
    return None if reference is None else (kind, str(reference))


def _object(text: str | None) -> dict[str, Any]:
    if text is None or text.startswith("("):
        return {}
    value = json.loads(text)
    return value if isinstance(value, dict) else {}
