"""The session of a browser in the consumer's account: its cookie, and the check that its phone number is verified."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import wraps
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.plan.onward import Onward, read_onward
from cuota.core.refusal import Code, Refused
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.plan.enter_account import SESSION_LIFE, Visit, load_account
from cuota.flows.plan.manage_plan import find_plan
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import (
    Stop,
    keep_secret,
    kept_secret,
    own_form,
    see_other,
)
from cuota.web.pages.files_form import early, files_form, unread_form
from cuota.web.pages.render import ACCOUNT_ERRORS, problem
from cuota.web.service import service_of

PATH = "/account"
PLACE = "account page"
_COOKIE = "account"
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_SECONDS = int(SESSION_LIFE.total_seconds())


@dataclass(frozen=True, slots=True)
class Known:
    """A browser that verified its phone number. `form` has the fields of the form that it sent, `files` its files."""

    visit: Visit
    consumer_id: UUID
    form: dict[str, str]
    files: tuple[tuple[str, bytes], ...] = ()


AccountHandler = Callable[[Request, Known], Awaitable[Response]]
PlanHandler = Callable[[Request, Known, PlanDetail], Awaitable[Response]]


def secret_of(request: Request) -> str | None:
    """Return the session secret in this browser's cookie; None if there is none, or if its form is invalid."""
    secret = kept_secret(request, _COOKIE)
    return secret if secret and _SECRET.fullmatch(secret) else None


def set_secret(request: Request, response: Response, secret: str) -> None:
    """Set the cookie with the session secret, for the lifetime of a session."""
    keep_secret(request, response, _COOKIE, secret, _SECONDS)


def drop_secret(request: Request, response: Response) -> None:
    """Delete the cookie with the session secret."""
    keep_secret(request, response, _COOKIE, "", 0)


async def visit_of(request: Request) -> Visit | None:
    """Return this browser's session; None if no phone number was sent yet, or the session has ended."""
    secret = secret_of(request)
    return await load_account(service_of(request).context, secret) if secret else None


def signed_out() -> Response:
    """Redirect to the first page, with the text that the session has ended."""
    return see_other(f"{PATH}?said=ended")


def missing(request: Request) -> Response:
    """Return the same 404 page for a malformed address, another consumer's plan, and a plan that does not exist."""
    return ACCOUNT_ERRORS.answer(request, Refused(Code.NOT_FOUND, "There is no such plan."))


def proved(handler: AccountHandler) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler for signed-in browsers only. A form must come from this browser's own page.

    The session is read after the form, which may arrive slowly: meanwhile the person may have signed out.
    """

    @wraps(handler)
    async def run(request: Request) -> Response:
        secret = secret_of(request)
        if secret is None:
            return signed_out()
        form, foreign = await own_form(request, secret, PLACE)
        visit = await visit_of(request)
        if visit is None or visit.consumer_id is None:
            return signed_out()
        if foreign is not None:
            return foreign
        return await handler(request, Known(visit, visit.consumer_id, form))

    return run


def of_plan(handler: PlanHandler) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler for a page about one plan of the signed-in consumer."""

    @proved
    @wraps(handler)
    async def run(request: Request, known: Known) -> Response:
        detail = await plan_in_path(request, known)
        return missing(request) if detail is None else await handler(request, known, detail)

    return run


def _unread(request: Request, refused: Refused) -> Response:
    """Return the page for a form that is too large or cannot be read, or that must wait."""
    if refused.code is Code.UNAVAILABLE:
        answer = problem(request, 503, "Please try again in a minute", refused.message)
        answer.headers["Retry-After"] = str(refused.retry_after)
        return answer
    return unread_form(request, refused)


async def plan_in_path(request: Request, known: Known) -> PlanDetail | None:
    """Return the consumer's plan that the request's path names, or None."""
    try:
        ids = guid(request.path_params["merchant_id"]), guid(request.path_params["order_id"])
    except Refused:
        return None
    detail = await find_plan(service_of(request).context, known.consumer_id, *ids)
    if detail is not None:
        request.scope["merchant_id"] = ids[0]
    return detail


def of_plan_with_files(handler: PlanHandler) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler for a form with files about one plan of the signed-in consumer.

    The form is read only after the browser and the plan are known.
    """

    async def run(request: Request) -> Response:
        visit = await visit_of(request)
        if visit is None or visit.consumer_id is None:
            return early(signed_out())
        known = Known(visit, visit.consumer_id, {})
        detail = await plan_in_path(request, known)
        if detail is None:
            return early(missing(request))
        try:
            async with files_form(request, visit.consumer_id, visit.secret, PLACE, _unread) as form:
                # A form may arrive slowly. Meanwhile the person may have signed out, or may have been erased.
                if await visit_of(request) is None or (detail := await plan_in_path(request, known)) is None:
                    return signed_out()
                known = replace(known, form=form.fields, files=tuple(form.files))
                return await handler(request, known, detail)
        except Stop as stop:
            return stop.response

    return run


def plan_path(detail: PlanDetail, said: str = "", onward: Onward | None = None) -> str:
    """Return the path of a plan's page.

    `said` is the key of a text about what just happened. `onward` names the payments that the consumer pays after this one.
    """
    order = detail.shown.order
    path = f"{PATH}/plans/{order.merchant_id}/{order.order_id}"
    query = [f"said={said}"] if said else []
    query += [onward.query] if onward and onward.then else []
    return f"{path}?{'&'.join(query)}" if query else path


def onward_of(request: Request) -> Onward | None:
    """Return the payments that the request's query names: the one that is charged, and the chosen ones after it."""
    query = request.query_params
    return read_onward(query.get("paying", ""), query.get("then", ""))
