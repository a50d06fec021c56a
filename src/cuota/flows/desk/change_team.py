"""Changes a merchant's team: invite, change a role, remove, forget an authenticator app, end sessions.

Each change and its entry in the audit log are one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from cuota.core.desk.person import Person, read_email, read_name
from cuota.core.desk.role import ROLE_WORDS, Role, may_grant
from cuota.db.desk import passkeys, people, sessions
from cuota.db.pool import Connection
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import Actor, AuditNote, record
from cuota.flows.desk.sign_in import INVITATION_LIFE, make_link


class BadTeam(BadChange):
    """The team cannot be changed in this way."""


# The page Team lists everybody. Each invitation is an e-mail to any address, also if the person is removed and invited again. Two
# invitations at the same moment may exceed a limit by one, so that no lock is needed.
MOST_PEOPLE = 200
MOST_INVITED = 100
INVITED_WITHIN = timedelta(hours=24)
GONE = "This person is no longer in the team. Nothing was changed."
LEFT = "You are no longer in the team. Nothing was changed."
LAST_OWNER = "A team needs an owner. Make another person an owner first."


def _require(actor: Actor, *roles: Role) -> None:
    """Raise BadTeam unless the actor may give and take these roles. The operator may give and take every role."""
    person = actor.person
    if person is not None and not all(may_grant(person.role, role) for role in roles):
        raise BadTeam(
            f"Your role, {ROLE_WORDS[person.role][0].lower()}, cannot do this. Ask an owner.", "role"
        )


def _text(typed: str, name: str, words: str) -> str:
    if not (text := " ".join(typed.split())):
        raise BadTeam(words, name)
    return text


async def invite(
    context: Context,
    merchant_id: UUID,
    actor: Actor,
    name: str,
    email: str,
    role: Role,
    reason: str,
    *,
    mail: bool = True,
) -> Person:
    """Add a person to the team and e-mail a link, which works for seven days. Raises BadTeam."""
    _require(actor, role)
    known_name, known_email = read_name(name), read_email(email)
    if known_name is None:
        raise BadTeam("Enter the person's name, with at most 100 characters.", "name")
    if known_email is None:
        raise BadTeam("Enter an e-mail address, such as ana@example.com.", "email")
    reason = _text(reason, "reason", "Say why, in a few words. The audit log keeps the reason.")
    person = Person(
        merchant_id, context.new_id(), known_email, known_name, role, utc_now(), None, has_factor=False
    )
    async with context.pool.session() as session, session.transaction():
        if actor.person is not None:
            await people.lock(session, merchant_id, actor.person.person_id)
        _require(await _now(session, merchant_id, actor), role)
        await _require_room(session, merchant_id)
        if not await people.add(session, person):
            raise BadTeam(f"{known_email} is already in the team.", "email")
        subject = f"{known_name} <{known_email}>"
        after = {"role": role}
        done = AuditNote("team.invite", subject, reason, after=after)
        await record(context, merchant_id, actor, done, session)
    if mail:
        await make_link(context, person, mail=True, life=INVITATION_LIFE)
    return person


async def _require_room(session: Connection, merchant_id: UUID) -> None:
    """Raise BadTeam if the team is full, or if too many people were invited."""
    team, lately = await people.count(session, merchant_id, utc_now() - INVITED_WITHIN)
    if team >= MOST_PEOPLE:
        raise BadTeam(f"The team has {MOST_PEOPLE} people already. Remove somebody first.", "email")
    if lately >= MOST_INVITED:
        raise BadTeam(
            f"{MOST_INVITED} people were invited in the last 24 hours. Invite more people tomorrow.", "email"
        )


async def change_role(
    context: Context, merchant_id: UUID, actor: Actor, person_id: UUID, role: Role, reason: str
) -> None:
    """Give a person another role. Raises BadTeam."""
    reason = _text(reason, "reason", "Say why, in a few words. The audit log keeps the reason.")
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(
            session, merchant_id, actor, person_id, stays_owner=role is Role.OWNER
        )
        _require(current, person.role, role)
        if person.role is role:
            return
        await people.change_role(session, merchant_id, person_id, role)
        before, after = {"role": person.role}, {"role": role}
        done = AuditNote("team.role", f"{person.name} <{person.email}>", reason, before=before, after=after)
        await record(context, merchant_id, actor, done, session)


async def remove(context: Context, merchant_id: UUID, actor: Actor, person_id: UUID, reason: str) -> None:
    """Remove a person, whose sessions and links end at once. Raises BadTeam."""
    reason = _text(reason, "reason", "Say why, in a few words. The audit log keeps the reason.")
    now = utc_now()
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(session, merchant_id, actor, person_id, stays_owner=False)
        if actor.person is None or actor.person.person_id != person_id:
            _require(current, person.role)
        await people.remove(session, merchant_id, person_id, now)
        await passkeys.remove_all(session, merchant_id, person_id)
        await sessions.end_all(session, merchant_id, person_id, now)
        done = AuditNote(
            "team.remove", f"{person.name} <{person.email}>", reason, before={"role": person.role}
        )
        await record(context, merchant_id, actor, done, session)


async def reset_factor(
    context: Context, merchant_id: UUID, actor: Actor, person_id: UUID, reason: str
) -> None:
    """Forget a person's authenticator app and passkeys after the phone was lost. All sessions end. Raises BadTeam."""
    reason = _text(reason, "reason", "Say why, in a few words. The audit log keeps the reason.")
    now = utc_now()
    async with context.pool.session() as session, session.transaction():
        current, person = await _locked(session, merchant_id, actor, person_id, stays_owner=True)
        _require(current, person.role)
        await people.reset_factor(session, merchant_id, person_id)
        await passkeys.remove_all(session, merchant_id, person_id)
        await sessions.end_all(session, merchant_id, person_id, now)
        await record(
            context,
            merchant_id,
            actor,
            AuditNote("team.factor", f"{person.name} <{person.email}>", reason),
            session,
        )


async def invite_again(context: Context, merchant_id: UUID, actor: Actor, person_id: UUID) -> bool:
    """E-mail another link to a person who has not signed in yet.

    Return False if the person got too many links. Raises BadTeam.
    """
    person = await people.read(context.pool, merchant_id, person_id)
    if person is None:
        raise BadTeam(GONE)
    _require(actor, person.role)
    if person.joined_at is not None:
        raise BadTeam(f"{person.name} has joined already, and can ask for a link on the sign-in page.")
    note = AuditNote("team.invite_again", f"{person.name} <{person.email}>", "")
    async with context.pool.session() as session, session.transaction():
        if await make_link(context, person, mail=True, life=INVITATION_LIFE, session=session) is None:
            return False
        await record(context, merchant_id, actor, note, session)
    return True


async def end_session(
    context: Context, merchant_id: UUID, actor: Actor, person_id: UUID, session_id: UUID
) -> bool:
    """End one session: one's own, or another person's with the right to change the team. Return False if it has ended before.

    Raises BadTeam.
    """
    if actor.person is not None and actor.person.person_id == person_id:
        return await sessions.end_one(context.pool, merchant_id, person_id, session_id)
    person = await people.read(context.pool, merchant_id, person_id)
    if person is None:
        raise BadTeam(GONE)
    _require(actor, person.role)
    async with context.pool.session() as session, session.transaction():
        ended = await sessions.end_one(session, merchant_id, person_id, session_id)
        if ended:
            note = AuditNote("team.end_session", f"{person.name} <{person.email}>", "")
            await record(context, merchant_id, actor, note, session)
    return ended


async def _locked(
    session: Connection, merchant_id: UUID, actor: Actor, person_id: UUID, *, stays_owner: bool
) -> tuple[Actor, Person]:
    """Return the actor with the current role, and a person. Lock both, and the team's owners.

    Raises BadTeam if the team would lose its last owner.
    """
    asking = [] if actor.person is None else [actor.person.person_id]
    owners = await people.owners(session, merchant_id, person_id, *asking)
    person = await people.read(session, merchant_id, person_id)
    if person is None:
        raise BadTeam(GONE)
    if owners == {person_id} and not stays_owner:
        raise BadTeam(LAST_OWNER)
    return await _now(session, merchant_id, actor), person


async def _now(session: Connection, merchant_id: UUID, actor: Actor) -> Actor:
    """Return the actor with the current role, which another person may have changed since the request began."""
    if actor.person is None:
        return actor
    found = await people.read(session, merchant_id, actor.person.person_id)
    if found is None:
        raise BadTeam(LEFT)
    return replace(actor, person=found)
