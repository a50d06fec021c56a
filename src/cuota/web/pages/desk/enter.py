"""Signs people in to and out of the merchant's dashboard: a mailed link, and a code of an authenticator app."""

from __future__ import annotations

import asyncio
import re
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.person import Person, read_email
from cuota.core.refusal import Refused
from cuota.db.row_security import narrow
from cuota.flows.desk import sign_in
from cuota.flows.desk.factor import WrongCode, factor_address, new_factor
from cuota.flows.desk.sign_in import DeskVisit
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, csrf_of, form_of, see_other
from cuota.web.pages.desk.visit import PATH, PLACE, drop_secret, place_of, set_secret, visit_of
from cuota.web.pages.render import PageContext, page, problem
from cuota.web.service import service_of

_SAID = {
    "left": ("You are signed out.", "done"),
    "ended": ("Your session has ended. Sign in again.", "calm"),
}
_ANSWER_SECONDS = 0.25
_CODE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def _shell(request: Request, title: str, lead: str | None, secret: str = "") -> PageContext:
    """Return the values of a page for a browser that is not signed in. `secret` is what its form's CSRF token is made of."""
    return {
        "page": {"title": title, "lead": lead},
        "sandbox": service_of(request).settings.sandbox,
        "form": {"action": PATH, "csrf": csrf_of(request, secret)},
        "nav": [],
        "person": None,
        "merchant_name": None,
        "errors": {},
        "values": {},
        "notice": None,
        "notice_tone": "error",
    }


async def show_sign_in(request: Request) -> Response:
    """Ask for the e-mail address."""
    visit = await visit_of(request)
    if visit is not None and visit.signed_in:
        return see_other(PATH)
    shown = _shell(request, "Sign in", "We mail you a link. No password is needed.")
    shown["notice"], shown["notice_tone"] = _SAID.get(request.query_params.get("said", ""), (None, "error"))
    return page(request, "desk/sign_in.html", shown)


async def ask_link(request: Request) -> Response:
    """Queue the mail with the link. The answer is the same for every address."""
    try:
        # A browser without a session has no secret. The token is the same for all of them; the Origin header is what counts.
        form = await form_of(request, "", PLACE)
    except Stop as stop:
        return stop.response
    email = read_email(form.get("email", ""))
    if email is None:
        shown = _shell(request, "Sign in", "We mail you a link. No password is needed.")
        shown |= {"errors": {"email": "Enter an e-mail address, such as ana@example.com."}, "values": form}
        return page(request, "desk/sign_in.html", shown, status=400)
    # The answer takes the same time for every address, because queuing a mail takes longer than finding nobody.
    await asyncio.gather(sign_in.ask_link(service_of(request).context, email), asyncio.sleep(_ANSWER_SECONDS))
    lead = f"If {email} belongs to a team, a link is on its way. It works once, for 15 minutes."
    shown = _shell(request, "Look at your mail", lead)
    return page(request, "desk/mailed.html", shown)


async def show_link(request: Request) -> Response:
    """Ask before the link is used, because mail programs open links by themselves. This uses nothing up."""
    person = await _person_of(request)
    if person is None:
        return _dead(request)
    shown = _shell(request, "Sign in", None, request.path_params["code"])
    shown |= {"email": person.email, "address": request.url.path}
    return page(request, "desk/link.html", shown)


async def use_link(request: Request) -> Response:
    """Use the link up and open a session."""
    person = await _person_of(request)
    if person is None:
        return _dead(request)
    code = request.path_params["code"]
    try:
        await form_of(request, code, PLACE)
    except Stop as stop:
        return stop.response
    link_id = guid(request.path_params["link_id"])
    context = service_of(request).context
    secret = await sign_in.enter(context, person.merchant_id, link_id, code, place_of(request))
    if secret is None:
        return _dead(request)
    response = see_other(f"{PATH}/code")
    set_secret(request, response, person.merchant_id, secret)
    return response


async def _person_of(request: Request) -> Person | None:
    code = request.path_params["code"]
    try:
        merchant_id: UUID = guid(request.path_params["merchant_id"])
        link_id = guid(request.path_params["link_id"])
    except Refused:
        return None
    if not _CODE.fullmatch(code):
        return None
    narrow(merchant_id)
    return await sign_in.read_link(service_of(request).context, merchant_id, link_id, code)


def _dead(request: Request) -> Response:
    text = "A link works once, for 15 minutes. Ask for a new one."
    return problem(
        request, 410, "This link no longer works", text, back=(f"{PATH}/sign-in", "Ask for a new link")
    )


async def show_code(request: Request) -> Response:
    """Ask for the code of the authenticator app, or set one up."""
    visit = await visit_of(request)
    if visit is None:
        return see_other(f"{PATH}/sign-in?said=ended")
    return see_other(PATH) if visit.signed_in else await _code_page(request, visit)


async def _code_page(request: Request, visit: DeskVisit, wrong: str | None = None) -> Response:
    context, person = service_of(request).context, visit.person
    if person.has_factor:
        shown = _shell(request, "Enter your code", "Open your authenticator app.", visit.secret)
        shown |= {"key": None, "address": None}
    else:
        secret = await new_factor(context, visit.session)
        lead = "From now on, signing in takes your mail and a code of an authenticator app on your phone."
        shown = _shell(request, "Set up your second factor", lead, visit.secret)
        groups = [secret[at : at + 4] for at in range(0, len(secret), 4)]
        shown |= {"key": " ".join(groups), "address": factor_address(context, person, secret)}
    if wrong:
        shown["errors"] = {"code": wrong}
    return page(request, "desk/code.html", shown, status=400 if wrong else 200)


async def check_code(request: Request) -> Response:
    """Check the code and finish signing in, with a new session secret."""
    visit = await visit_of(request)
    if visit is None:
        return see_other(f"{PATH}/sign-in?said=ended")
    if visit.signed_in:
        return see_other(PATH)
    try:
        form = await form_of(request, visit.secret, PLACE)
    except Stop as stop:
        return stop.response
    try:
        context = service_of(request).context
        secret = await sign_in.finish(context, visit, form.get("code", ""), place_of(request))
    except WrongCode as wrong:
        return await _code_page(request, visit, str(wrong))
    response = see_other(PATH)
    set_secret(request, response, visit.merchant_id, secret)
    return response


async def leave(request: Request) -> Response:
    """Sign out: end the session, and delete this browser's secret."""
    visit = await visit_of(request)
    if visit is not None:
        try:
            await form_of(request, visit.secret, PLACE)
        except Stop as stop:
            return stop.response
        await sign_in.leave(service_of(request).context, visit)
    response = see_other(f"{PATH}/sign-in?said=left")
    drop_secret(request, response)
    return response
