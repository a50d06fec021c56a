"""Changes the operator's team: invite, change a role, remove, forget an authenticator app, end a session.

Each change and its entry in the log are one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from cuota.core.desk.person import read_email, read_name
from cuota.core.operator.person import Operator
from cuota.core.operator.reason import read_reason
from cuota.core.operator.role import OPERATOR_WORDS, OperatorRole, operator_grantable
from cuota.core.risk.explanation import counted
from cuota.db.operator import identities, operator_passkeys, operator_sessions, operators
from cuota.db.pool import Connection
from cuota.db.session import Session
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.change_team import GONE, LAST_OWNER, LEFT, BadTeam
from cuota.flows.desk.sign_in import INVITATION_LIFE
from cuota.flows.operator.log_action import OperatorActor, OperatorNote, log_action
from cuota.flows.operator.operator_sign_in import make_operator_link


def reason_of(typed: str) -> str:
    """Return the reason without surrounding spaces. Raises BadTeam if there is none."""
    if (text := read_reason(typed)) is None:
        raise BadTeam("Say why, in a few words. The log keeps the reason.", "reason")
    return text


def _require(actor: OperatorActor, *roles: OperatorRole) -> None:
    """Raise BadTeam unless the actor may give and take these roles. A command may give and take every role."""
    person = actor.person
    if person is not None and not set(roles) <= set(operator_grantable(person.role)):
        words = OPERATOR_WORDS[person.role][0].lower()
        raise BadTeam(f"Your role, {words}, cannot do this. Ask an owner.", "role")


async def invite_operator(
    context: Context,
    actor: OperatorActor,
    name: str,
    email: str,
    role: OperatorRole,
    reason: str,
    *,
    mail: bool = True,
) -> Operator:
    """Add a person to the team and e-mail a link, which works for seven days. Raises BadTeam."""
    _require(actor, role)
    known_name, known_email = read_name(name), read_email(email)
    if known_name is None:
        raise BadTeam("Enter the person's name, with at most 100 characters.", "name")
    if known_email is None:
        raise BadTeam("Enter an e-mail address, such as ana@example.com.", "email")
    reason = reason_of(reason)
    person = Operator(context.new_id(), known_email, known_name, role, utc_now(), None, has_factor=False)
    async with context.pool.session() as session, session.transaction():
        if actor.person is not None:
            await identities.lock_person(session, actor.person.person_id)
        _require(await _now(session, actor), role)
        if not await operators.add(session, person):
            raise BadTeam(f"{known_email} is already in the team.", "email")
        note = OperatorNote("team.invite", _subject(person), reason, after={"role": role})
        await log_action(context, actor, note, session)
    if mail:
        await make_operator_link(context, person, mail=True, life=INVITATION_LIFE)
    return person


async def change_operator_role(
    context: Context, actor: OperatorActor, person_id: UUID, role: OperatorRole, reason: str
) -> None:
    """Give a person another role. Raises BadTeam."""
    reason = reason_of(reason)
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(session, actor, person_id, stays_owner=role is OperatorRole.OWNER)
        _require(current, person.role, role)
        if person.role is role:
            return
        await operators.change_role(session, person_id, role)
        note = OperatorNote(
            "team.role", _subject(person), reason, before={"role": person.role}, after={"role": role}
        )
        await log_action(context, actor, note, session)


async def remove_operator(context: Context, actor: OperatorActor, person_id: UUID, reason: str) -> None:
    """Remove a person, whose sessions and links end at once. Raises BadTeam."""
    reason, now = reason_of(reason), utc_now()
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(session, actor, person_id, stays_owner=False)
        if actor.person is None or actor.person.person_id != person_id:
            _require(current, person.role)
        await operators.remove(session, person_id, now)
        await identities.unlink(session, person_id)
        await operator_passkeys.remove_all(session, person_id)
        await operator_sessions.end_all(session, person_id, now)
        note = OperatorNote("team.remove", _subject(person), reason, before={"role": person.role})
        await log_action(context, actor, note, session)


async def reset_operator_factor(context: Context, actor: OperatorActor, person_id: UUID, reason: str) -> None:
    """Forget a person's authenticator app and passkeys after the phone was lost. All sessions end. Raises BadTeam."""
    reason, now = reason_of(reason), utc_now()
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(session, actor, person_id, stays_owner=True)
        _require(current, person.role)
        before = {"secondFactor": await second_factor_of(session, person)}
        await operators.reset_factor(session, person_id)
        await operator_passkeys.remove_all(session, person_id)
        await operator_sessions.end_all(session, person_id, now)
        after = {"secondFactor": "removed"}
        note = OperatorNote("team.factor", _subject(person), reason, before=before, after=after)
        await log_action(context, actor, note, session)


async def second_factor_of(session: Session, person: Operator) -> str:
    """Return what a person has as a second factor, for the log."""
    passkeys = len(await operator_passkeys.of_person(session, person.person_id))
    app = ["authenticator app"] if person.has_factor else []
    return ", ".join([*app, *([counted(passkeys, "passkey")] if passkeys else [])]) or "none"


async def forget_operator_account(
    context: Context, actor: OperatorActor, person_id: UUID, reason: str
) -> None:
    """Delete the link between a person and an account at the provider. All sessions end. Raises BadTeam.

    The next sign-in at the provider links an account again, by its verified e-mail address.
    """
    reason, now = reason_of(reason), utc_now()
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(session, actor, person_id, stays_owner=True)
        _require(current, person.role)
        if not await identities.unlink(session, person_id):
            return
        await operator_sessions.end_all(session, person_id, now)
        await log_action(context, actor, OperatorNote("team.account", _subject(person), reason), session)


async def end_operator_session(
    context: Context, actor: OperatorActor, person_id: UUID, session_id: UUID
) -> None:
    """End one session: one's own, or another person's with the right to change the team. Raises BadTeam."""
    if actor.person is not None and actor.person.person_id == person_id:
        await operator_sessions.end_one(context.pool, person_id, session_id)
        return
    person = await operators.read(context.pool, person_id)
    if person is None:
        raise BadTeam(GONE)
    _require(actor, person.role)
    async with context.pool.session() as session, session.transaction():
        if await operator_sessions.end_one(session, person_id, session_id):
            await log_action(context, actor, OperatorNote("team.end_session", _subject(person), ""), session)


def _subject(person: Operator) -> str:
    return f"{person.name} <{person.email}>"


async def _locked(
    session: Connection, actor: OperatorActor, person_id: UUID, *, stays_owner: bool
) -> tuple[OperatorActor, Operator]:
    """Return the actor with the current role, and a person. Lock both, and the team's owners.

    Raises BadTeam if the team would lose its last owner.
    """
    asking = [] if actor.person is None else [actor.person.person_id]
    owners = await operators.owners(session, person_id, *asking)
    person = await operators.read(session, person_id)
    if person is None:
        raise BadTeam(GONE)
    if owners == {person_id} and not stays_owner:
        raise BadTeam(LAST_OWNER)
    return await _now(session, actor), person


async def _now(session: Connection, actor: OperatorActor) -> OperatorActor:
    """Return the actor with the current role, which another person may have changed since the request began."""
    if actor.person is None:
        return actor
    found = await operators.read(session, actor.person.person_id)
    if found is None:
        raise BadTeam(LEFT)
    return replace(actor, person=found)


async def invite_operator_again(context: Context, actor: OperatorActor, person_id: UUID) -> bool:
    """E-mail another link to a person who has not signed in yet.

    Return False if the person got too many links. Raises BadTeam.
    """
    person = await operators.read(context.pool, person_id)
    if person is None:
        raise BadTeam(GONE)
    _require(actor, person.role)
    if person.joined_at is not None:
        raise BadTeam(f"{person.name} has joined already, and can ask for a link on the sign-in page.")
    async with context.pool.session() as session, session.transaction():
        link = await make_operator_link(context, person, mail=True, life=INVITATION_LIFE, session=session)
        if link is None:
            return False
        await log_action(context, actor, OperatorNote("team.invite_again", _subject(person), ""), session)
    return True
