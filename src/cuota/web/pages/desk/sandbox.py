"""The sandbox in the merchant's dashboard. Production has no such page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.flows.desk.record import AuditNote, record
from cuota.web.pages.desk import sandbox_panel
from cuota.web.pages.desk.sandbox_panel import Changed, only_in_the_sandbox
from cuota.web.pages.desk.view import common
from cuota.web.pages.desk.visit import PATH, Desk, allowed, missing
from cuota.web.service import service_of

_SANDBOX = f"{PATH}/sandbox"


@only_in_the_sandbox(missing)
@allowed(Action.USE_SANDBOX)
async def show(request: Request, desk: Desk) -> Response:
    """Show the clock, the forks and what is due next."""
    return await sandbox_panel.page_of(request, common(request, desk, "Sandbox", here=_SANDBOX), _SANDBOX)


@only_in_the_sandbox(missing)
@allowed(Action.USE_SANDBOX)
async def change(request: Request, desk: Desk) -> Response:
    """Move the clock, or save, restore or delete a fork, for every merchant of the sandbox."""

    async def log(changed: Changed) -> None:
        note = AuditNote(changed.action, changed.subject)
        await record(service_of(request).context, desk.merchant_id, desk.actor, note)

    frame = common(request, desk, "Sandbox", here=_SANDBOX)
    return await sandbox_panel.change_page(request, desk.form, frame, _SANDBOX, log)


@only_in_the_sandbox(missing)
@allowed(Action.USE_SANDBOX)
async def ask_rewind(request: Request, desk: Desk) -> Response:
    """Describe the rewind, and ask for a confirmation."""
    return await sandbox_panel.rewind_page(request, common(request, desk, "Go back", here=_SANDBOX), _SANDBOX)
