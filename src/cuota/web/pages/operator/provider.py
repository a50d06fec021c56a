"""Signing in at the company's OpenID Connect provider: the redirect to the provider, and the page to which the browser returns.

The redirect begins with a link, not with a form: a browser applies the page's Content-Security-Policy to every address to which
a form is redirected, and a provider may redirect to other addresses.
"""

from __future__ import annotations

import re
import secrets
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.role import OperatorAction
from cuota.flows.operator.enter_by_provider import confirm_by_provider, enter_by_provider
from cuota.flows.operator.operator_sign_in import OperatorVisit
from cuota.flows.operator.visit_provider import (
    LONGEST_ANSWER,
    VISIT_LIFE,
    ProviderAnswer,
    ProviderRefused,
    begin_visit,
    finish_visit,
    rules_of,
)
from cuota.rails.unavailable import RailUnavailable
from cuota.web.pages.checkout.session import keep_secret, kept_secret, see_other
from cuota.web.pages.desk.entrance import place_of
from cuota.web.pages.operator.visit import (
    PATH,
    PROVIDER,
    OperatorDesk,
    allowed,
    keep_cookie,
    missing,
    visit_of,
)
from cuota.web.pages.render import problem
from cuota.web.server.route import Handler
from cuota.web.service import service_of

_COOKIE = "operator-provider"
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_PRINTABLE = re.compile(rf"[!-~]{{0,{LONGEST_ANSWER}}}", re.ASCII)
_SECONDS = int(VISIT_LIFE.total_seconds())


def _with_provider(handler: Handler) -> Handler:
    """Make a handler that exists only if a provider is set. If the provider does not answer, a page says so.

    A HEAD request begins no visit and finishes none.
    """

    @wraps(handler)
    async def run(request: Request) -> Response:
        if service_of(request).context.rails.identity is None or request.method == "HEAD":
            return missing(request)
        try:
            return await handler(request)
        except ProviderRefused as refused:
            return _refused(request, str(refused))
        except RailUnavailable:
            return _unavailable(request)

    return run


def _secret(request: Request) -> str:
    """Return the secret of this browser's sign-ins at the provider, or an empty text."""
    found = _SECRET.fullmatch(kept_secret(request, _COOKIE) or "")
    return found[0] if found else ""


async def _leave_for(request: Request, *, visit: OperatorVisit | None, again: bool) -> Response:
    """Begin a visit at the provider, and redirect the browser there."""
    secret = _secret(request) or secrets.token_urlsafe(32)
    context = service_of(request).context
    address = await begin_visit(context, secret, place_of(request), visit=visit, again=again)
    response = see_other(address)
    keep_secret(request, response, _COOKIE, secret, _SECONDS)
    return response


@_with_provider
async def start(request: Request) -> Response:
    """Redirect to the provider for a sign-in. With `again`, the provider asks for the account even if it knows one."""
    visit = await visit_of(request)
    if visit is not None and visit.signed_in:
        return see_other(PATH)
    return await _leave_for(request, visit=None, again="again" in request.query_params)


@allowed(OperatorAction.READ_ORDERS)
async def confirm(request: Request, desk: OperatorDesk) -> Response:
    """Redirect to the provider for a fresh second factor."""

    async def leave(asked: Request) -> Response:
        return await _leave_for(asked, visit=desk.visit, again=True)

    return await _with_provider(leave)(request)


@_with_provider
async def returned(request: Request) -> Response:
    """Finish a visit that this browser began at the provider: a sign-in, or a fresh second factor."""
    context, place, before = service_of(request).context, place_of(request), await visit_of(request)
    back = await finish_visit(context, _secret(request), _answer(request))
    if back.session_hash is not None:
        try:
            await confirm_by_provider(context, back, before, place)
        except ProviderRefused as refused:
            return problem(request, 403, "Not confirmed", str(refused), back=(PATH, "Go to the dashboard"))
        return _confirmed(request)
    secret = await enter_by_provider(context, back, before, place)
    # If the provider has confirmed a second factor, the page for the second factor redirects at once.
    response = see_other(f"{PATH}/code")
    keep_cookie(request, response, secret)
    return response


def _answer(request: Request) -> ProviderAnswer:
    """Read the answer in the address. A parameter that occurs twice or cannot be read is empty."""
    known = {
        name: values[0]
        for name in ("state", "code", "error", "iss")
        if len(values := request.query_params.getlist(name)) == 1 and _PRINTABLE.fullmatch(values[0])
    }
    named = known.get("iss", "") if "iss" in request.query_params else None
    return ProviderAnswer(known.get("state", ""), known.get("code", ""), known.get("error", ""), named)


def _confirmed(request: Request) -> Response:
    name = rules_of(service_of(request).context).name
    text = (
        f"{name} confirmed that it is you. Close this tab, go back to the page that asked, and press its button again. No code is needed"
        " for the next five minutes."
    )
    return problem(request, 200, "Confirmed", text, back=(PATH, "Go to the dashboard"))


def _refused(request: Request, text: str) -> Response:
    name = rules_of(service_of(request).context).name
    return problem(
        request,
        403,
        "You are not signed in",
        text,
        back=(f"{PROVIDER}?again=1", f"Sign in with {name} again"),
    )


def _unavailable(request: Request) -> Response:
    rules = rules_of(service_of(request).context)
    other = (
        "Nobody can sign in until it is back, except an owner with a link of the command `cuota desk link --operator --emergency`."
        if rules.only
        else "Try again in a moment, or sign in with a mailed link or a passkey."
    )
    text = f"We cannot reach {rules.name} right now, so you were not signed in. {other}"
    return problem(
        request, 503, f"{rules.name} does not answer", text, back=(f"{PATH}/sign-in", "Back to signing in")
    )
