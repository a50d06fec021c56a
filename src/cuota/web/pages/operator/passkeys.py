"""The pages for a person's own passkeys in the operator's dashboard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.role import OperatorAction
from cuota.flows.operator.keep_operator_passkeys import operator_passkeys_of_visit, prove_operator_by_passkey
from cuota.web.pages.desk import passkey_pages as pages
from cuota.web.pages.desk.passkey_pages import OwnPasskeys
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, missing, prove
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of


def _own(request: Request, desk: OperatorDesk) -> OwnPasskeys:
    context = service_of(request).context

    def frame(title: str, lead: str) -> PageContext:
        return common(request, desk, title, here=f"{PATH}/team", lead=lead)

    return OwnPasskeys(
        f"{PATH}/passkeys",
        operator_passkeys_of_visit(context, desk.visit, desk.actor.address),
        desk.form,
        not desk.fresh,
        frame,
        partial(prove, request, desk),
        partial(prove_operator_by_passkey, context, desk.visit),
        partial(missing, request),
    )


def _for_everybody(
    handler: Callable[[Request, OwnPasskeys], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler for every signed-in person, because the passkeys are the person's own."""

    @allowed(OperatorAction.READ_ORDERS)
    async def run(request: Request, desk: OperatorDesk) -> Response:
        return await handler(request, _own(request, desk))

    return run


listed = _for_everybody(pages.listed)
options_to_add = _for_everybody(pages.options_to_add)
add = _for_everybody(pages.add)
one = _for_everybody(pages.one)
change = _for_everybody(pages.change)
options_to_prove = _for_everybody(pages.options_to_prove)
prove_again = _for_everybody(pages.prove)
