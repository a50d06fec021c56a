"""Signs consumers in to and out of their account: with a phone number and a one-time code, for an hour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.typed_text import typed_digits
from cuota.flows.checkout.take_step import Problem
from cuota.flows.plan.enter_account import (
    Visit,
    check_account_code,
    leave_account,
    new_secret,
    open_account,
    send_account_code,
)
from cuota.web.pages.account.plans import plan_list
from cuota.web.pages.account.view import common
from cuota.web.pages.account.visit import (
    PATH,
    PLACE,
    Known,
    drop_secret,
    missing,
    secret_of,
    set_secret,
    signed_out,
    visit_of,
)
from cuota.web.pages.checkout.known_browser import browser_of
from cuota.web.pages.checkout.session import Stop, form_of, own_form, see_other
from cuota.web.pages.checkout.view import masked
from cuota.web.pages.render import page
from cuota.web.service import service_of

_SAID = {
    "ended": (
        "Please confirm your number again. We sign you out an hour after each code, to keep your plans private.",
        "calm",
    ),
    "no-cookie": (
        "Please enter your number again. If you see this text again, allow cookies for this site in your browser.",
        "calm",
    ),
    "left": ("You are signed out. See you next time.", "done"),
}
_POSTED = ("phone", "resend", "leave", "forget")
AccountStep = Callable[[Request, Visit, dict[str, str]], Awaitable[Response]]


async def home(request: Request) -> Response:
    """Show the consumer's plans if this browser is signed in, otherwise the phone form. This writes nothing to the database."""
    visit = await visit_of(request)
    if visit is not None and visit.consumer_id is not None:
        return await plan_list(request, Known(visit, visit.consumer_id, {}))
    return _phone_page(request, secret_of(request) or new_secret())


def _phone_page(
    request: Request, secret: str, problem: Problem | None = None, values: dict[str, str] | None = None
) -> Response:
    lead = "See what you have paid and what comes next. First, confirm your phone number."
    shown = common(request, secret, "Your plans", lead)
    shown["notice"], shown["notice_tone"] = _SAID.get(request.query_params.get("said", ""), (None, "error"))
    if problem:
        shown |= {"notice": problem.notice, "errors": problem.errors, "values": values or {}}
    response = page(request, "account/phone.html", shown, status=400 if problem else 200)
    set_secret(request, response, secret)
    return response


async def phone(request: Request) -> Response:
    """Send a code to the typed phone number, no matter whether a consumer with this number exists."""
    secret = secret_of(request)
    if secret is None:
        return see_other(f"{PATH}?said=no-cookie")
    try:
        form = await form_of(request, secret, PLACE)
    except Stop as stop:
        return stop.response
    context = service_of(request).context
    visit = await open_account(context, secret)
    try:
        await send_account_code(context, visit, typed_digits(form.get("phone", "")), browser_of(request))
    except Problem as wrong:
        return _phone_page(request, secret, wrong, form)
    response = see_other(f"{PATH}/code")
    set_secret(request, response, secret)
    return response


def _waiting(step: AccountStep) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler for a step between sending the code and verifying it."""

    @wraps(step)
    async def run(request: Request) -> Response:
        secret = secret_of(request)
        if secret is None:
            return signed_out()
        form, foreign = await own_form(request, secret, PLACE)
        visit = await visit_of(request)
        if visit is None or visit.session.phone is None:
            return signed_out()
        if visit.consumer_id is not None:
            return see_other(PATH)
        if foreign is not None:
            return foreign
        return await step(request, visit, form)

    return run


def _code_page(request: Request, visit: Visit, problem: Problem | None = None) -> Response:
    number = masked(visit.session.phone)
    lead = f"We texted a code to {number}, to make sure that it is you."
    shown = common(request, visit.secret, "Enter your code", lead)
    shown["phone_masked"] = number
    shown["sandbox_code"] = service_of(request).context.rails.message.shown_code
    if problem:
        shown |= {"notice": problem.notice, "errors": problem.errors}
    elif request.query_params.get("said") == "resent":
        shown |= {"notice": f"A new code is on its way to {number}.", "notice_tone": "done"}
    return page(request, "account/code.html", shown, status=400 if problem else 200)


@_waiting
async def show_code(request: Request, visit: Visit, form: dict[str, str]) -> Response:
    """Show the page that asks for the code."""
    del form
    return _code_page(request, visit)


@_waiting
async def code(request: Request, visit: Visit, form: dict[str, str]) -> Response:
    """Check the typed code, and give the browser a new session secret."""
    try:
        secret = await check_account_code(service_of(request).context, visit, form.get("code", ""))
    except Problem as wrong:
        return _code_page(request, visit, wrong)
    response = see_other(PATH)
    set_secret(request, response, secret)
    return response


@_waiting
async def resend(request: Request, visit: Visit, form: dict[str, str]) -> Response:
    """Send another code to the same number."""
    del form
    try:
        context, number = service_of(request).context, visit.session.phone or ""
        await send_account_code(context, visit, number, browser_of(request))
    except Problem as wrong:
        return _code_page(request, visit, wrong.as_notice())
    return see_other(f"{PATH}/code?said=resent")


async def leave(request: Request) -> Response:
    """Sign out: end the session, and delete this browser's session secret."""
    visit = await visit_of(request)
    if visit is not None:
        try:
            await form_of(request, visit.secret, PLACE)
        except Stop as stop:
            return stop.response
        await leave_account(service_of(request).context, visit)
    response = see_other(f"{PATH}?said=left")
    drop_secret(request, response)
    return response


async def elsewhere(request: Request) -> Response:
    """Redirect a GET of a form's address (a reload or a bookmark) to the account. It changes nothing."""
    return see_other(PATH) if request.path_params["step"] in _POSTED else missing(request)
