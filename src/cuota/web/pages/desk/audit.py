"""The audit log of the merchant's dashboard."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.changed_values import changes_of
from cuota.core.desk.role import Action
from cuota.core.order.id_bounds import BEYOND
from cuota.core.refusal import Refused
from cuota.db.desk import audit as log
from cuota.db.desk.audit import Entry
from cuota.web.ids import guid
from cuota.web.pages.desk.view import common, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 50
ACTIONS = (
    ("", "Every action"),
    ("order.", "Captures, voids and refunds"),
    ("team.", "Team and access"),
    ("settings.", "Settings"),
    ("passkey.", "Passkeys"),
    ("orders.", "Exports of orders"),
    ("payouts.", "Exports of payouts"),
    ("bank.", "Bank account"),
    ("dispute.", "Disputes"),
    ("webhooks.", "Webhooks"),
    ("keys.", "API keys"),
    ("origins.", "Web origins"),
    ("sandbox.", "Sandbox clock"),
)
_EMPTY = (
    "Nothing yet. Each capture, void, refund and change of access in this dashboard is listed here, with the person and the"
    " reason."
)


@allowed(Action.READ_AUDIT)
async def audit(request: Request, desk: Desk) -> Response:
    """List the actions of people, newest first, filtered by action and person."""
    given = request.query_params
    action = given.get("action", "")
    if action not in {value for value, _ in ACTIONS}:
        action = ""
    actor = given.get("person", "").replace("\0", "").strip().lower()[:100]
    try:
        before = guid(given["before"]) if "before" in given else BEYOND
    except Refused:
        before = BEYOND
    pool = service_of(request).context.pool
    found = await log.page(pool, desk.merchant_id, before, A_PAGE + 1, action=action, actor=actor)
    entries = found[:A_PAGE]
    query = {name: value for name, value in (("action", action), ("person", actor)) if value}
    if len(found) > A_PAGE:
        last: UUID | None = entries[-1].entry_id
    else:
        last = await log.last_scanned(pool, desk.merchant_id, before) if query else None
    following = urlencode({**query, "before": str(last)}) if last else None
    shown: PageContext = {
        **common(request, desk, "Audit log", here=f"{PATH}/audit"),
        "rows": [_row(each) for each in entries],
        "actions": ACTIONS,
        "list": f"{PATH}/audit",
        "empty": _EMPTY,
        "values": {"action": action, "person": actor},
        "filtered": bool(query),
        "next": f"{PATH}/audit?{following}" if following else None,
    }
    return page(request, "desk/audit.html", shown)


def _row(each: Entry) -> PageContext:
    return {
        "at": when(each.at),
        "actor": each.actor,
        "role": each.role,
        "address": each.address,
        "action": each.action,
        "subject": each.subject,
        "reason": each.reason,
        "changes": changes_of(each.before, each.after),
        "order": f"{PATH}/orders/{each.order_id}" if each.order_id else None,
    }
