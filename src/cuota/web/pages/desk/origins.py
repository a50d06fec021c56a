"""The web origins whose pages may open the checkout: the form on the page Developers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.merchant.manage_origins import add_origin, remove_origin
from cuota.web.addresses import BadAddress, read_origin
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.changes import proved_cause
from cuota.web.pages.desk.developers import DEVELOPERS, developers_page
from cuota.web.pages.desk.visit import Desk, allowed
from cuota.web.service import service_of


@allowed(Action.READ_KEYS, Action.CHANGE_KEYS)
async def change(request: Request, desk: Desk) -> Response:
    """Add or remove an origin. Each needs a reason and a fresh code."""
    try:
        return see_other(f"{DEVELOPERS}?said={await _changed(request, desk)}")
    except BadChange as bad:
        return await developers_page(request, desk, {bad.name: str(bad)})


async def _changed(request: Request, desk: Desk) -> str:
    """Make the change, and return the key of the text for the next page. Raises BadChange."""
    context, form = service_of(request).context, desk.form
    cause = await proved_cause(request, desk)
    if form.get("do") == "add":
        await add_origin(context, desk.merchant_id, _origin(form.get("origin", "")), cause)
        return "origin-added"
    if form.get("do") == "remove":
        await remove_origin(context, desk.merchant_id, form.get("remove", ""), cause)
        return "origin-removed"
    raise BadChange("Choose what to change.")


def _origin(typed: str) -> str:
    try:
        return read_origin(typed)
    except BadAddress as bad:
        raise BadChange(f"The origin {str(bad).removesuffix('.')}.", "origin") from None
