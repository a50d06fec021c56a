"""The log of the actions of the operator's people."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.changed_values import changes_of
from cuota.core.operator.role import OperatorAction
from cuota.core.order.id_bounds import BEYOND
from cuota.core.refusal import Refused
from cuota.db.operator import operator_log
from cuota.db.operator.operator_log import OperatorEntry
from cuota.web.ids import guid
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 50
ACTIONS = (
    ("", "Every action"),
    ("merchant.", "Merchants"),
    ("consumer.", "Consumers"),
    ("dispute.", "Disputes"),
    ("money.", "Money"),
    ("team.", "Team and access"),
    ("passkey.", "Passkeys"),
    ("sign-in.", "Sign-ins at the provider"),
    ("sandbox.", "Sandbox"),
)
_EMPTY = "No entries yet. Each change, and each reveal of a consumer's name, gets an entry with the person and the reason."


def _id_of(text: str) -> UUID | None:
    try:
        return guid(text)
    except Refused:
        return None


@allowed(OperatorAction.READ_AUDIT)
async def log(request: Request, desk: OperatorDesk) -> Response:
    """List the actions, newest first, filtered by action, person, and subject."""
    given = request.query_params
    action = given.get("action", "")
    if action not in {value for value, _ in ACTIONS}:
        action = ""
    actor = given.get("person", "").replace("\0", "").strip().lower()[:100]
    about, before = _id_of(given.get("about", "")), _id_of(given.get("before", "")) or BEYOND
    pool = service_of(request).context.pool
    found = await operator_log.page(pool, before, A_PAGE + 1, about=about, action=action, actor=actor)
    entries = found[:A_PAGE]
    named = (("action", action), ("person", actor), ("about", str(about) if about else ""))
    query = {name: value for name, value in named if value}
    if len(found) > A_PAGE:
        last: UUID | None = entries[-1].entry_id
    else:
        last = await operator_log.last_scanned(pool, before, about) if query else None
    following = urlencode({**query, "before": str(last)}) if last else None
    shown: PageContext = {
        **common(request, desk, "Log", here=f"{PATH}/log"),
        "rows": [_row(each) for each in entries],
        "actions": ACTIONS,
        "list": f"{PATH}/log",
        "empty": _EMPTY,
        "values": {"action": action, "person": actor},
        "filtered": bool(query),
        "about": str(about) if about else None,
        "next": f"{PATH}/log?{following}" if following else None,
    }
    return page(request, "desk/audit.html", shown)


def _row(each: OperatorEntry) -> PageContext:
    return {
        "at": when(each.at),
        "actor": each.actor,
        "role": each.role,
        "address": each.address,
        "action": each.action,
        "subject": each.subject,
        "reason": each.reason,
        "changes": changes_of(each.before, each.after),
        "order": None,
    }
