"""The pages for a person's own passkeys in the merchant's dashboard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.flows.desk.keep_passkeys import passkeys_of_visit, prove_by_passkey
from cuota.web.pages.desk import passkey_pages as pages
from cuota.web.pages.desk.passkey_pages import OwnPasskeys
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.view import common
from cuota.web.pages.desk.visit import PATH, Desk, allowed, missing
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of


def _own(request: Request, desk: Desk) -> OwnPasskeys:
    context = service_of(request).context

    def frame(title: str, lead: str) -> PageContext:
        return common(request, desk, title, here=f"{PATH}/team", lead=lead)

    return OwnPasskeys(
        f"{PATH}/passkeys",
        passkeys_of_visit(context, desk.visit, desk.actor.address),
        desk.form,
        not desk.fresh,
        frame,
        partial(prove, request, desk),
        partial(prove_by_passkey, context, desk.visit),
        partial(missing, request),
    )


def _for_everybody(
    handler: Callable[[Request, OwnPasskeys], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler for every signed-in person, because the passkeys are the person's own."""

    @allowed(Action.READ_ORDERS)
    async def run(request: Request, desk: Desk) -> Response:
        return await handler(request, _own(request, desk))

    return run


listed = _for_everybody(pages.listed)
options_to_add = _for_everybody(pages.options_to_add)
add = _for_everybody(pages.add)
one = _for_everybody(pages.one)
change = _for_everybody(pages.change)
options_to_prove = _for_everybody(pages.options_to_prove)
prove_again = _for_everybody(pages.prove)
