"""The session of a browser in the merchant's dashboard: its cookie, the check of the person's role, and forms."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action, may
from cuota.core.refusal import Code, Refused
from cuota.db.row_security import narrow
from cuota.flows.context import utc_now
from cuota.flows.desk.record import Actor
from cuota.flows.desk.sign_in import SESSION_LIFE, DeskVisit, load_visit
from cuota.web.body import CHECK_CALLER
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, keep_secret, kept_secret, own_form, see_other
from cuota.web.pages.files_form import early, files_form, unread_by
from cuota.web.pages.render import PageForm, problem
from cuota.web.server.client_address import seen_address
from cuota.web.service import service_of

PATH = "/desk"
PLACE = "dashboard page"
_COOKIE = "desk"
_SECRET = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{43})", re.ASCII)
_SECONDS = int(SESSION_LIFE.total_seconds())

DESK_ERRORS = PageForm(
    nowhere=(
        "There is no such page",
        "Perhaps the address was cut off when it was copied. Nothing was changed.",
    ),
    ours=("We cannot answer right now", "Please try again in a moment. No money was moved twice."),
    home=(PATH, "Go to the dashboard"),
)


@dataclass(frozen=True, slots=True)
class Desk:
    """A signed-in person. `form` has the fields of the form that the browser sent, `files` its files as (name, content)."""

    visit: DeskVisit
    form: dict[str, str]
    actor: Actor
    files: tuple[tuple[str, bytes], ...] = ()

    @property
    def merchant_id(self) -> UUID:
        """The merchant whose dashboard this is."""
        return self.visit.merchant_id

    def may(self, action: Action) -> bool:
        """Whether the person's role allows this."""
        return may(self.visit.person.role, action)

    @property
    def fresh(self) -> bool:
        """Whether the second factor is fresh enough for an action that needs it again."""
        return self.visit.session.one_step or self.visit.fresh(utc_now())


DeskHandler = Callable[[Request, Desk], Awaitable[Response]]


def _cookie_of(request: Request) -> tuple[UUID, str] | None:
    """Return the merchant's id and the session's secret in this browser's cookie, or None."""
    found = _SECRET.fullmatch(kept_secret(request, _COOKIE) or "")
    return None if found is None else (UUID(found[1]), found[2])


async def visit_of(request: Request) -> DeskVisit | None:
    """Return this browser's session; None if there is none, or if it has ended."""
    kept = _cookie_of(request)
    if kept is None:
        return None
    merchant_id, secret = kept
    narrow(merchant_id)
    visit = await load_visit(service_of(request).context, merchant_id, secret)
    if visit is not None:
        request.scope["merchant_id"] = merchant_id
    return visit


def keep_cookie(request: Request, response: Response, text: str) -> None:
    """Set the cookie: the merchant's id and the session's secret. An empty text deletes the cookie."""
    keep_secret(request, response, _COOKIE, text, _SECONDS if text else 0)


def sign_in_first() -> Response:
    """Redirect to the sign-in page."""
    return see_other(f"{PATH}/sign-in")


def not_allowed(request: Request, desk: Desk) -> Response:
    """Return the page for a person whose role does not allow the page or the action."""
    text = (
        f"Your role is {desk.visit.person.role}, which does not include this. Nothing was changed. An owner or an admin of your"
        " team can change your role."
    )
    return problem(request, 403, "Your role does not include this", text)


def missing(request: Request) -> Response:
    """Return the same 404 page for a malformed id, another merchant's id, and an id that does not exist."""
    return DESK_ERRORS.answer(request, Refused(Code.NOT_FOUND, "There is no such page."))


def _desk(request: Request, visit: DeskVisit, form: dict[str, str]) -> Desk:
    return Desk(visit, form, Actor(visit.person, seen_address(request)))


def allowed(*actions: Action) -> Callable[[DeskHandler], Callable[[Request], Awaitable[Response]]]:
    """Make a handler for signed-in people whose role allows all these actions.

    A form must come from this browser's own page. `handler.actions` says which actions a route needs; a test reads it.
    The session is read after the form, which may arrive slowly: meanwhile the session may have ended, or the role may have changed.
    """

    def made(handler: DeskHandler) -> Callable[[Request], Awaitable[Response]]:
        @wraps(handler)
        async def run(request: Request) -> Response:
            kept = _cookie_of(request)
            if kept is None:
                return sign_in_first()
            form, foreign = await own_form(request, kept[1], PLACE)
            visit = await visit_of(request)
            if visit is None or not visit.signed_in:
                return sign_in_first()
            if foreign is not None:
                return foreign
            desk = _desk(request, visit, form)
            if not all(map(desk.may, actions)):
                return not_allowed(request, desk)
            request.scope[CHECK_CALLER] = partial(_require, request, actions)
            try:
                return await handler(request, desk)
            except Stop as stop:
                return stop.response

        run.actions = actions  # type: ignore[attr-defined]
        return run

    return made


async def _require(request: Request, actions: tuple[Action, ...]) -> None:
    """Raise Refused unless the person is still signed in, and the role still allows all these actions."""
    visit = await visit_of(request)
    if visit is None or not visit.signed_in or not all(may(visit.person.role, action) for action in actions):
        raise Refused(Code.UNAUTHORIZED, "The person was signed out, or has another role now.")


def allowed_with_files(*actions: Action) -> Callable[[DeskHandler], Callable[[Request], Awaitable[Response]]]:
    """Make a handler like `allowed` for a form with files. The form is read only after the person is known.

    Forms with files of one person are read one after the other. The session is read again after the form.
    """

    def made(handler: DeskHandler) -> Callable[[Request], Awaitable[Response]]:
        @wraps(handler)
        async def run(request: Request) -> Response:
            visit = await visit_of(request)
            if visit is None or not visit.signed_in:
                return early(sign_in_first())
            desk = _desk(request, visit, {})
            if not all(map(desk.may, actions)):
                return early(not_allowed(request, desk))
            sender = visit.person.person_id
            try:
                async with files_form(request, sender, visit.secret, PLACE, unread_by(DESK_ERRORS)) as form:
                    visit = await visit_of(request)
                    if visit is None or not visit.signed_in:
                        return sign_in_first()
                    desk = replace(_desk(request, visit, form.fields), files=tuple(form.files))
                    if not all(map(desk.may, actions)):
                        return not_allowed(request, desk)
                    return await handler(request, desk)
            except Stop as stop:
                return stop.response

        run.actions = actions  # type: ignore[attr-defined]
        return run

    return made


def id_in_path(request: Request, name: str) -> UUID:
    """Return the id in the path. Raises Stop with the 404 page if the id is malformed."""
    try:
        return guid(request.path_params[name])
    except Refused:
        raise Stop(missing(request)) from None
