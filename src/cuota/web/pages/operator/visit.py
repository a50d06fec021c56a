"""The session of a browser in the operator's dashboard: its cookie, the check of the person's role, and forms."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.role import OperatorAction, operator_may
from cuota.core.refusal import Code, Refused
from cuota.db.cluster.living import LivingNodes
from cuota.flows.context import utc_now
from cuota.flows.desk.sign_in import SESSION_LIFE
from cuota.flows.desk.totp import WrongCode
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.operator_sign_in import OperatorVisit, load_operator_visit, prove_operator_again
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, keep_secret, kept_secret, own_form, see_other
from cuota.web.pages.files_form import early, files_form, unread_by
from cuota.web.pages.render import PageForm, problem
from cuota.web.server.client_address import seen_address
from cuota.web.service import service_of

PATH = "/operator"
# The address at which a sign-in at the company's provider begins. The pages below belong to it.
PROVIDER = f"{PATH}/provider"
PLACE = "dashboard page"
# The name differs from that of the cookie of the merchants' people.
_COOKIE = "operator"
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_SECONDS = int(SESSION_LIFE.total_seconds())

OPERATOR_ERRORS = PageForm(
    nowhere=(
        "There is no such page",
        "Perhaps the address was cut off when it was copied. Nothing was changed.",
    ),
    ours=("We cannot answer right now", "Please try again in a moment. No money was moved twice."),
    home=(PATH, "Go to the dashboard"),
)


@dataclass(frozen=True, slots=True)
class OperatorDesk:
    """A signed-in person of the operator. `form` has the fields of the form that the browser sent, `files` its files.

    Pages about all merchants read with `every`, so that they can be shown while a node of a cluster is down.
    """

    visit: OperatorVisit
    form: dict[str, str]
    actor: OperatorActor
    every: LivingNodes
    files: tuple[tuple[str, bytes], ...] = ()

    def may(self, action: OperatorAction) -> bool:
        """Whether the person's role allows this."""
        return operator_may(self.visit.person.role, action)

    @property
    def fresh(self) -> bool:
        """Whether the second factor is fresh enough for an action that needs it again."""
        return self.visit.session.one_step or self.visit.fresh(utc_now())


OperatorHandler = Callable[[Request, OperatorDesk], Awaitable[Response]]


def _cookie_of(request: Request) -> str | None:
    """Return the session's secret in this browser's cookie, or None."""
    found = _SECRET.fullmatch(kept_secret(request, _COOKIE) or "")
    return None if found is None else found[0]


async def visit_of(request: Request) -> OperatorVisit | None:
    """Return this browser's session; None if there is none, or if it has ended."""
    secret = _cookie_of(request)
    return None if secret is None else await load_operator_visit(service_of(request).context, secret)


def _sign_in_first() -> Response:
    return see_other(f"{PATH}/sign-in")


def keep_cookie(request: Request, response: Response, text: str) -> None:
    """Set the cookie with the session's secret. An empty text deletes the cookie."""
    keep_secret(request, response, _COOKIE, text, _SECONDS if text else 0)


def missing(request: Request) -> Response:
    """Return the same 404 page for a malformed id and an id that does not exist."""
    return OPERATOR_ERRORS.answer(request, Refused(Code.NOT_FOUND, "There is no such page."))


def _not_allowed(request: Request, desk: OperatorDesk) -> Response:
    text = (
        f"Your role is {desk.visit.person.role}, which does not include this. Nothing was changed. An owner of your team can"
        " change your role."
    )
    return problem(request, 403, "Your role does not include this", text)


def allowed(
    *actions: OperatorAction,
) -> Callable[[OperatorHandler], Callable[[Request], Awaitable[Response]]]:
    """Make a handler for signed-in people whose role allows all these actions.

    A form must come from this browser's own page. `handler.actions` says which actions a route needs; a test reads it.
    The session is read after the form, which may arrive slowly: meanwhile the session may have ended, or the role may have changed.
    """

    def made(handler: OperatorHandler) -> Callable[[Request], Awaitable[Response]]:
        @wraps(handler)
        async def run(request: Request) -> Response:
            secret = _cookie_of(request)
            if secret is None:
                return _sign_in_first()
            form, foreign = await own_form(request, secret, PLACE)
            visit = await visit_of(request)
            if visit is None or not visit.signed_in:
                return _sign_in_first()
            if foreign is not None:
                return foreign
            desk = OperatorDesk(visit, form, _actor(request, visit), _every(request))
            if not all(map(desk.may, actions)):
                return _not_allowed(request, desk)
            try:
                return await handler(request, desk)
            except Stop as stop:
                return stop.response

        run.actions = actions  # type: ignore[attr-defined]
        return run

    return made


def allowed_with_files(
    look: Callable[[Request], Awaitable[object]], *actions: OperatorAction
) -> Callable[[OperatorHandler], Callable[[Request], Awaitable[Response]]]:
    """Make a handler like `allowed` for a form with files. The form is read only after the person is known.

    The session is read again after the form. `look` reads the object that the path names, and raises Stop with the 404 page before the form is read.
    """

    def made(handler: OperatorHandler) -> Callable[[Request], Awaitable[Response]]:
        @wraps(handler)
        async def run(request: Request) -> Response:
            visit = await visit_of(request)
            if visit is None or not visit.signed_in:
                return early(_sign_in_first())
            desk = OperatorDesk(visit, {}, _actor(request, visit), _every(request))
            if not all(map(desk.may, actions)):
                return early(_not_allowed(request, desk))
            try:
                await look(request)
                sender = visit.person.person_id
                async with files_form(
                    request, sender, visit.secret, PLACE, unread_by(OPERATOR_ERRORS)
                ) as form:
                    visit = await visit_of(request)
                    if visit is None or not visit.signed_in:
                        return _sign_in_first()
                    actor, files = _actor(request, visit), tuple(form.files)
                    desk = OperatorDesk(visit, form.fields, actor, _every(request), files)
                    if not all(map(desk.may, actions)):
                        return _not_allowed(request, desk)
                    return await handler(request, desk)
            except Stop as stop:
                return stop.response

        run.actions = actions  # type: ignore[attr-defined]
        return run

    return made


def _actor(request: Request, visit: OperatorVisit) -> OperatorActor:
    return OperatorActor(visit.person, seen_address(request))


def _every(request: Request) -> LivingNodes:
    return LivingNodes(service_of(request).context.pool)


async def prove(request: Request, desk: OperatorDesk) -> dict[str, str]:
    """Check the second factor again, unless it is fresh. Return the error for the form's field, if there is one."""
    if desk.fresh:
        return {}
    typed = desk.form.get("code", "")
    if not typed:
        # No code was entered, so this does not count as an attempt.
        return {"code": "Enter the code of your authenticator app."}
    try:
        await prove_operator_again(service_of(request).context, desk.visit, typed)
    except WrongCode as wrong:
        return {"code": str(wrong)}
    return {}


def id_in_path(request: Request, name: str) -> UUID:
    """Return the id in the path. Raises Stop with the 404 page if the id is malformed."""
    try:
        return guid(request.path_params[name])
    except Refused:
        raise Stop(missing(request)) from None
