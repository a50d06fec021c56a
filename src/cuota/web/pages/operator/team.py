"""The operator's team: its people, their roles and sessions, and invitations."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.person import Operator
from cuota.core.operator.role import OPERATOR_WORDS, OperatorAction, OperatorRole, operator_grantable
from cuota.core.refusal import Refused
from cuota.db.operator import identities, operator_passkeys, operator_sessions, operators
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.desk.sign_in import IDLE
from cuota.flows.operator import change_operators
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_TEAM = f"{PATH}/team"


@allowed(OperatorAction.READ_TEAM)
async def team(request: Request, desk: OperatorDesk) -> Response:
    """List the team, with a form for invitations."""
    return await _team_page(request, desk)


async def _team_page(request: Request, desk: OperatorDesk, errors: dict[str, str] | None = None) -> Response:
    found, mine = await operators.team(service_of(request).context.pool), desk.visit.person
    shown: PageContext = {
        **common(request, desk, "Team", here=_TEAM),
        "people": [_row(each, me=each.person_id == mine.person_id) for each in found],
        "roles": _roles(operator_grantable(mine.role)),
        "every_role": _roles(tuple(OperatorRole)),
        "may_change": desk.may(OperatorAction.CHANGE_TEAM),
        "values": {"role": OperatorRole.SUPPORT.value},
    }
    if errors:
        return page(request, "desk/team.html", failed(shown, errors, desk.form), status=400)
    return page(request, "desk/team.html", shown)


def _roles(roles: tuple[OperatorRole, ...]) -> list[PageContext]:
    words = OPERATOR_WORDS
    return [{"value": role.value, "label": words[role][0], "may": words[role][1]} for role in roles]


def _row(each: Operator, *, me: bool) -> PageContext:
    return {
        "name": each.name,
        "email": each.email,
        "role": OPERATOR_WORDS[each.role][0],
        "joined": when(each.joined_at) if each.joined_at else None,
        "factor": each.has_factor,
        "me": me,
        "address": f"{_TEAM}/{each.person_id}",
    }


@allowed(OperatorAction.READ_TEAM, OperatorAction.CHANGE_TEAM)
async def invite(request: Request, desk: OperatorDesk) -> Response:
    """Invite a person."""
    form = desk.form
    if errors := await prove(request, desk):
        return await _team_page(request, desk, errors)
    try:
        await change_operators.invite_operator(
            service_of(request).context, desk.actor, form.get("name", ""), form.get("email", ""), _role(form),
            form.get("reason", ""),
        )  # fmt: skip
    except BadTeam as bad:
        return await _team_page(request, desk, {bad.name: str(bad)})
    return see_other(f"{_TEAM}?said=invited")


def _role(form: dict[str, str]) -> OperatorRole:
    try:
        return OperatorRole(form.get("role", ""))
    except ValueError:
        raise BadTeam("Choose a role.", "role") from None


@allowed(OperatorAction.READ_ORDERS)
async def me(request: Request, desk: OperatorDesk) -> Response:
    """Redirect to the person's own page."""
    del request
    return see_other(f"{_TEAM}/{desk.visit.person.person_id}")


async def _person(request: Request, desk: OperatorDesk) -> Operator:
    """Return the person in the path. Another person's page needs the right to see the team. Raises Stop."""
    person_id = id_in_path(request, "person_id")
    found = await operators.read(service_of(request).context.pool, person_id)
    own = person_id == desk.visit.person.person_id
    if found is None or not (own or desk.may(OperatorAction.READ_TEAM)):
        raise Stop(missing(request))
    return found


@allowed(OperatorAction.READ_ORDERS)
async def person(request: Request, desk: OperatorDesk) -> Response:
    """Show one person. Everybody sees their own page; another person's page needs the right to see the team."""
    return await _person_page(request, desk, await _person(request, desk))


async def _person_page(
    request: Request, desk: OperatorDesk, found: Operator, errors: dict[str, str] | None = None
) -> Response:
    mine = desk.visit.person
    own, may_grant = found.person_id == mine.person_id, found.role in operator_grantable(mine.role)
    shown: PageContext = {
        **common(request, desk, found.name, here=_TEAM),
        "one": _row(found, me=own),
        "roles": _roles(operator_grantable(mine.role)),
        "provider": await _provider(request, found),
        "passkeys": len(await operator_passkeys.of_person(service_of(request).context.pool, found.person_id)),
        "may_change": may_grant,
        "may_leave": own,
        "values": {"role": found.role.value},
        "sessions": await _sessions(request, desk, found, utc_now()) if own or may_grant else [],
    }
    if errors:
        return page(request, "desk/person.html", failed(shown, errors, {}), status=400)
    return page(request, "desk/person.html", shown)


async def _provider(request: Request, found: Operator) -> PageContext | None:
    """Return the provider's name, and since when the person's account there is linked. None if no provider is set."""
    context = service_of(request).context
    provider, rules = context.rails.identity, context.settings.provider_rules
    if provider is None or rules is None:
        return None
    linked_at = await identities.linked_at(context.pool, found.person_id, provider.issuer)
    return {"name": rules.name, "linked": None if linked_at is None else when(linked_at)}


async def _sessions(
    request: Request, desk: OperatorDesk, found: Operator, now: datetime
) -> list[PageContext]:
    pool = service_of(request).context.pool
    return [
        {
            "id": str(each.session_id),
            "since": when(each.created_at),
            "seen": when(each.seen_at),
            "browser": each.browser or "unknown browser",
            "address": each.address or "unknown address",
            "here": each.session_id == desk.visit.session.session_id,
        }
        for each in await operator_sessions.of_person(pool, found.person_id, now, now - IDLE)
    ]


@allowed(OperatorAction.READ_ORDERS)
async def change(request: Request, desk: OperatorDesk) -> Response:
    """Change the role, remove the person, mail another link, or delete the authenticator app or the linked account."""
    found, context = await _person(request, desk), service_of(request).context
    if errors := await prove(request, desk):
        return await _person_page(request, desk, found, errors)
    try:
        return see_other(await _changed(context, desk, found))
    except BadTeam as bad:
        return await _person_page(request, desk, found, {bad.name: str(bad)})


async def _changed(context: Context, desk: OperatorDesk, found: Operator) -> str:
    """Make the change, and return the address of the next page. Raises BadTeam."""
    do, reason = desk.form.get("do", ""), desk.form.get("reason", "")
    whose, here = (context, desk.actor, found.person_id), f"{_TEAM}/{found.person_id}"
    if do == "role":
        await change_operators.change_operator_role(*whose, _role(desk.form), reason)
    elif do == "remove":
        await change_operators.remove_operator(*whose, reason)
        own = found.person_id == desk.visit.person.person_id
        return f"{PATH}/sign-in?said=left" if own else f"{_TEAM}?said=removed"
    elif do == "factor":
        await change_operators.reset_operator_factor(*whose, reason)
    elif do == "provider":
        await change_operators.forget_operator_account(*whose, reason)
    elif do == "again":
        do = "invited" if await change_operators.invite_operator_again(*whose) else "too-many"
    else:
        return here
    return f"{here}?said={do}"


@allowed(OperatorAction.READ_ORDERS)
async def end_session(request: Request, desk: OperatorDesk) -> Response:
    """End one session."""
    found, context = await _person(request, desk), service_of(request).context
    try:
        session_id: UUID = guid(desk.form.get("session", ""))
        await change_operators.end_operator_session(context, desk.actor, found.person_id, session_id)
    except Refused:
        return missing(request)
    except BadTeam as bad:
        return await _person_page(request, desk, found, {"": str(bad)})
    return see_other(f"{_TEAM}/{found.person_id}?said=ended")
