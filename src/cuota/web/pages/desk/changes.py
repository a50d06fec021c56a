"""The checks of every form that changes access or money: a fresh code, a reason, and an id that detects a second click."""

from __future__ import annotations

from uuid import UUID

from starlette.requests import Request

from cuota.core.refusal import Refused
from cuota.flows.desk.bad_change import BadChange, read_reason
from cuota.flows.desk.record import Cause
from cuota.web.ids import guid
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.visit import Desk


async def proved_cause(request: Request, desk: Desk) -> Cause:
    """Check the code of a form, unless the last one is fresh, and its reason.

    Return the actor and the reason. Raises BadChange.
    """
    for name, text in (await prove(request, desk)).items():
        raise BadChange(text, name)
    return Cause(desk.actor, read_reason(desk.form.get("reason", "")))


def once_of(desk: Desk) -> UUID:
    """Return the id that the page gave its form, so that a second click adds nothing. Raises BadChange."""
    try:
        return guid(desk.form.get("once", ""))
    except Refused:
        raise BadChange("This form is too old. Open the page again. Nothing was changed.") from None
