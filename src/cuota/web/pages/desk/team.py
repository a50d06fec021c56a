"""The team of a merchant's dashboard: its people, their roles and sessions, and invitations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.person import Person
from cuota.core.desk.role import ROLE_WORDS, Action, Role, grantable
from cuota.core.refusal import Refused
from cuota.db.desk import passkeys, people, sessions
from cuota.flows.context import Context, utc_now
from cuota.flows.desk import change_team
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.desk.sign_in import IDLE, prove_again
from cuota.flows.desk.totp import WrongCode
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import common, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_TEAM = f"{PATH}/team"


@allowed(Action.READ_TEAM)
async def team(request: Request, desk: Desk) -> Response:
    """List the team, with a form for invitations."""
    return await _team_page(request, desk)


async def _team_page(
    request: Request, desk: Desk, errors: dict[str, str] | None = None, values: dict[str, str] | None = None
) -> Response:
    found = await people.team(service_of(request).context.pool, desk.merchant_id)
    mine = desk.visit.person
    shown: PageContext = {
        **common(request, desk, "Team", here=_TEAM),
        "people": [_row(each, me=each.person_id == mine.person_id) for each in found],
        "roles": _roles(grantable(mine.role)),
        "every_role": _roles(tuple(Role)),
        "may_change": desk.may(Action.CHANGE_TEAM),
        "asks_code": not desk.fresh,
        "values": {"role": Role.SUPPORT.value, **(values or {})},
    }
    if errors:
        shown |= {"errors": errors, "notice": errors.get("", None), "notice_tone": "error"}
    return page(request, "desk/team.html", shown, status=400 if errors else 200)


def _roles(roles: tuple[Role, ...]) -> list[PageContext]:
    return [{"value": role.value, "label": ROLE_WORDS[role][0], "may": ROLE_WORDS[role][1]} for role in roles]


def _row(each: Person, *, me: bool) -> PageContext:
    return {
        "name": each.name,
        "email": each.email,
        "role": ROLE_WORDS[each.role][0],
        "joined": when(each.joined_at) if each.joined_at else None,
        "factor": each.has_factor,
        "me": me,
        "address": f"{_TEAM}/{each.person_id}",
    }


async def prove(request: Request, desk: Desk) -> dict[str, str]:
    """Check the second factor again, unless it is fresh. Return the error for the form's field, if there is one."""
    if desk.fresh:
        return {}
    typed = desk.form.get("code", "")
    if not typed:
        # No code was entered, so this does not count as an attempt.
        return {"code": "Enter the code of your authenticator app."}
    try:
        await prove_again(service_of(request).context, desk.visit, typed)
    except WrongCode as wrong:
        return {"code": str(wrong)}
    return {}


@allowed(Action.READ_TEAM, Action.CHANGE_TEAM)
async def invite(request: Request, desk: Desk) -> Response:
    """Invite a person."""
    form = desk.form
    errors = await prove(request, desk)
    if errors:
        return await _team_page(request, desk, errors, form)
    try:
        await change_team.invite(
            service_of(request).context, desk.merchant_id, desk.actor,
            form.get("name", ""), form.get("email", ""), _role(form), form.get("reason", ""),
        )  # fmt: skip
    except BadTeam as bad:
        return await _team_page(request, desk, {bad.name: str(bad)}, form)
    return see_other(f"{_TEAM}?said=invited")


def _role(form: dict[str, str]) -> Role:
    try:
        return Role(form.get("role", ""))
    except ValueError:
        raise BadTeam("Choose a role.", "role") from None


@allowed(Action.READ_ORDERS)
async def me(request: Request, desk: Desk) -> Response:
    """Redirect to the person's own page."""
    del request
    return see_other(f"{_TEAM}/{desk.visit.person.person_id}")


@allowed(Action.READ_ORDERS)
async def person(request: Request, desk: Desk) -> Response:
    """Show one person. Everybody sees their own page; another person's page needs the right to see the team."""
    return await _person_page(request, desk, await _person(request, desk))


async def _person(request: Request, desk: Desk) -> Person:
    person_id = id_in_path(request, "person_id")
    found = await people.read(service_of(request).context.pool, desk.merchant_id, person_id)
    own = person_id == desk.visit.person.person_id
    if found is None or not (own or desk.may(Action.READ_TEAM)):
        raise Stop(missing(request))
    return found


async def _person_page(
    request: Request, desk: Desk, found: Person, errors: dict[str, str] | None = None
) -> Response:
    now = utc_now()
    own = found.person_id == desk.visit.person.person_id
    may_grant = found.role in grantable(desk.visit.person.role)
    shown: PageContext = {
        **common(request, desk, found.name, here=_TEAM),
        "one": _row(found, me=own),
        "roles": _roles(grantable(desk.visit.person.role)),
        "provider": None,
        "passkeys": len(
            await passkeys.of_person(service_of(request).context.pool, desk.merchant_id, found.person_id)
        ),
        "may_change": may_grant,
        "may_leave": own,
        "asks_code": not desk.fresh,
        "values": {"role": found.role.value},
        "sessions": await _sessions(request, desk, found, now) if own or may_grant else [],
    }
    if errors:
        shown |= {
            "errors": {name: text for name, text in errors.items() if name},
            "notice": errors.get(""),
            "notice_tone": "error",
        }
    return page(request, "desk/person.html", shown, status=400 if errors else 200)


async def _sessions(request: Request, desk: Desk, found: Person, now: Any) -> list[PageContext]:
    pool = service_of(request).context.pool
    listed = await sessions.of_person(pool, desk.merchant_id, found.person_id, now, now - IDLE)
    return [
        {
            "id": str(each.session_id),
            "since": when(each.created_at),
            "seen": when(each.seen_at),
            "browser": each.browser or "unknown browser",
            "address": each.address or "unknown address",
            "here": each.session_id == desk.visit.session.session_id,
        }
        for each in listed
    ]


@allowed(Action.READ_ORDERS)
async def change(request: Request, desk: Desk) -> Response:
    """Change a person's role, remove the person, forget the authenticator app, or mail another link."""
    found, form = await _person(request, desk), desk.form
    context, reason, do = service_of(request).context, form.get("reason", ""), form.get("do", "")
    errors = await prove(request, desk)
    if errors:
        return await _person_page(request, desk, found, errors)
    try:
        return see_other(await _changed(context, desk, found, do, reason))
    except BadTeam as bad:
        return await _person_page(request, desk, found, {bad.name: str(bad)})


async def _changed(context: Context, desk: Desk, found: Person, do: str, reason: str) -> str:
    """Make the change, and return the address of the next page. Raises BadTeam."""
    ids = desk.merchant_id, desk.actor, found.person_id
    here, said = f"{_TEAM}/{found.person_id}", do
    if do == "role":
        await change_team.change_role(context, *ids, _role(desk.form), reason)
    elif do == "remove":
        await change_team.remove(context, *ids, reason)
        own = found.person_id == desk.visit.person.person_id
        return f"{PATH}/sign-in?said=left" if own else f"{_TEAM}?said=removed"
    elif do == "factor":
        await change_team.reset_factor(context, *ids, reason)
    elif do == "again":
        said = "again" if await change_team.invite_again(context, *ids) else "too-many"
    else:
        return here
    return f"{here}?said={said}"


@allowed(Action.READ_ORDERS)
async def end_session(request: Request, desk: Desk) -> Response:
    """End one session."""
    found = await _person(request, desk)
    try:
        session_id: UUID = guid(desk.form.get("session", ""))
        await change_team.end_session(
            service_of(request).context, desk.merchant_id, desk.actor, found.person_id, session_id
        )
    except Refused:
        return missing(request)
    except BadTeam as bad:
        return await _person_page(request, desk, found, {"": str(bad)})
    return see_other(f"{_TEAM}/{found.person_id}?said=ended")
