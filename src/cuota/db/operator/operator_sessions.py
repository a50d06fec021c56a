"""Sign-in links of the operator's people, and the sessions that they open. All times are of the real clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.operator.person import Operator
from cuota.db.desk.sessions import Link, NewSession, ShownSession
from cuota.db.old_rows import deleting
from cuota.db.operator.operators import operator_of
from cuota.db.session import Session

_ADD_LINK = """INSERT INTO operator_links (link_id, person_id, created_at, ends_at, mail_at, one_step, emergency)
    SELECT $1, $2, $3, $4, $5, $6, $9
    WHERE (SELECT count(*) FROM operator_links WHERE person_id = $2 AND created_at > $7
        AND used_at IS NULL AND ends_at > $3) < $8 RETURNING link_id"""
_LINK = """SELECT link_id, person_id, ends_at, one_step, emergency FROM operator_links
    WHERE link_id = $1 AND used_at IS NULL AND ends_at > $2"""
# As for the links of merchants' people (db/desk/sessions.py).
_USE_LINK = """UPDATE operator_links SET used_at = $2, mail_at = NULL WHERE link_id = $1 AND used_at IS NULL AND ends_at > $2
    RETURNING one_step"""
_MAIL = """WITH due AS MATERIALIZED (
    SELECT link_id FROM operator_links WHERE mail_at <= $1 ORDER BY mail_at LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE operator_links l SET mail_at = $2::timestamptz + least(tries, 120) * interval '30 seconds', tries = least(tries + 1, 1000)
    FROM due WHERE l.link_id = due.link_id AND l.mail_at <= $1
    RETURNING l.link_id, l.person_id, l.ends_at"""
_MAILED = "UPDATE operator_links SET mail_at = NULL WHERE link_id = $1"
_OPEN = """INSERT INTO operator_sessions
    (session_hash, session_id, person_id, created_at, seen_at, ends_at, proved_at, one_step, browser, address)
    VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9)"""
_READ = """SELECT s.session_id, s.session_hash, s.seen_at, s.proved_at, s.one_step, s.new_factor, p.person_id, p.email, p.name,
        p.role, p.invited_at, p.joined_at, p.factor IS NOT NULL AS has_factor,
        EXISTS (SELECT FROM operator_passkeys k WHERE k.person_id = s.person_id) AS has_passkey
    FROM operator_sessions s JOIN operator_people p ON p.person_id = s.person_id
    WHERE s.session_hash = $1 AND s.ends_at > $2 AND s.seen_at > $3 AND p.removed_at IS NULL"""
_IS_OPEN = "SELECT FROM operator_sessions WHERE session_hash = $1"
_SEEN = "UPDATE operator_sessions SET seen_at = $2 WHERE session_hash = $1"
_DELETE = "DELETE FROM operator_sessions WHERE session_hash = $1 RETURNING session_id"
_NEW_FACTOR = """UPDATE operator_sessions SET new_factor = coalesce(new_factor, $2) WHERE session_hash = $1
    RETURNING new_factor"""
_PROVED = "UPDATE operator_sessions SET proved_at = $2 WHERE session_hash = $1"
_END_ONE = "DELETE FROM operator_sessions WHERE person_id = $1 AND session_id = $2 RETURNING 1"
_END_ALL = "DELETE FROM operator_sessions WHERE person_id = $1"
_END_LINKS = """UPDATE operator_links SET ends_at = $2, mail_at = NULL
    WHERE person_id = $1 AND used_at IS NULL AND ends_at > $2"""
_OF_PERSON = """SELECT session_id, created_at, seen_at, browser, address FROM operator_sessions
    WHERE person_id = $1 AND ends_at > $2 AND seen_at > $3 AND proved_at IS NOT NULL ORDER BY seen_at DESC, session_id"""
_FORGET_SESSIONS = deleting("operator_sessions", "session_hash", "ends_at < $1")
_FORGET_LINKS = deleting("operator_links", "link_id", "ends_at < $1")


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """A browser's session. `proved_at` is the time of the last second factor; None before the person is signed in.

    `new_factor` is the encrypted secret of an authenticator app that this browser sets up. `has_passkey`: the person has one.
    """

    session_id: UUID
    session_hash: bytes
    seen_at: datetime
    proved_at: datetime | None
    one_step: bool
    new_factor: bytes | None
    person: Operator
    has_passkey: bool


async def add_link(
    session: Session, link: Link, now: datetime, mail_at: datetime | None, since: datetime, most: int
) -> bool:
    """Add a link, unless this person got `most` links after `since`. With `mail_at`, a job mails the link."""
    row = await session.fetchrow(
        _ADD_LINK,
        link.link_id,
        link.person_id,
        now,
        link.ends_at,
        mail_at,
        link.one_step,
        since,
        most,
        link.emergency,
    )
    return row is not None


async def read_link(session: Session, link_id: UUID, now: datetime) -> Link | None:
    """Return a link that can still be used, or None."""
    row = await session.fetchrow(_LINK, link_id, now)
    return None if row is None else Link(*row)


async def use_link(session: Session, link_id: UUID, now: datetime) -> bool | None:
    """Use up a link. Return its `one_step`, or None if it was used before or has expired."""
    row = await session.fetchrow(_USE_LINK, link_id, now)
    return None if row is None else bool(row["one_step"])


async def claim_mail(session: Session, now: datetime, lease: timedelta, limit: int) -> list[Link]:
    """Claim at most `limit` links whose mail is due. Links that are not reported by `mailed` are due again when the lease ends."""
    rows = await session.fetch(_MAIL, now, now + lease, limit)
    return [Link(row["link_id"], row["person_id"], row["ends_at"]) for row in rows]


async def mailed(session: Session, link_id: UUID) -> None:
    """Record that the mail was sent, or will not be retried."""
    await session.fetchrow(_MAILED, link_id)


async def open_session(session: Session, new: NewSession, now: datetime) -> None:
    """Open a session."""
    await session.fetchrow(
        _OPEN, new.session_hash, new.session_id, new.person_id, now, new.ends_at, new.proved_at, new.one_step,
        new.browser, new.address,
    )  # fmt: skip


async def read(
    session: Session, session_hash: bytes, now: datetime, seen_after: datetime
) -> OperatorSession | None:
    """Return a browser's session with its person.

    Return None if it has ended or timed out, or if the person was removed.
    """
    row = await session.fetchrow(_READ, session_hash, now, seen_after)
    if row is None:
        return None
    return OperatorSession(
        row["session_id"], row["session_hash"], row["seen_at"], row["proved_at"], row["one_step"], row["new_factor"],
        operator_of(row), row["has_passkey"],
    )  # fmt: skip


async def is_open(session: Session, session_hash: bytes) -> bool:
    """Return whether nobody has ended the session of a browser."""
    return await session.fetchrow(_IS_OPEN, session_hash) is not None


async def seen(session: Session, session_hash: bytes, now: datetime) -> None:
    """Record that the session is in use."""
    await session.fetchrow(_SEEN, session_hash, now)


async def begin_factor(session: Session, session_hash: bytes, new: bytes) -> bytes:
    """Store the encrypted secret of an app that this browser begins to set up.

    Returns the stored secret: the first one, if two requests arrive at once. If the session has just ended, returns `new`.
    """
    row = await session.fetchrow(_NEW_FACTOR, session_hash, new)
    return new if row is None else bytes(row["new_factor"])


async def proved(session: Session, session_hash: bytes, now: datetime) -> None:
    """Record a second factor in a session that was signed in before."""
    await session.fetchrow(_PROVED, session_hash, now)


async def end(session: Session, session_hash: bytes) -> bool:
    """End a browser's session. Return False if another request has already ended it."""
    return await session.fetchrow(_DELETE, session_hash) is not None


async def end_one(session: Session, person_id: UUID, session_id: UUID) -> bool:
    """End one session of a person. Return False if there is none."""
    return await session.fetchrow(_END_ONE, person_id, session_id) is not None


async def end_all(session: Session, person_id: UUID, now: datetime) -> None:
    """End all sessions and links of a person."""
    await session.fetchrow(_END_LINKS, person_id, now)
    await session.fetch(_END_ALL, person_id)


async def of_person(
    session: Session, person_id: UUID, now: datetime, seen_after: datetime
) -> list[ShownSession]:
    """Return a person's sessions, beginning with the one that was used last."""
    return [ShownSession(*row) for row in await session.fetch(_OF_PERSON, person_id, now, seen_after)]


async def forget(session: Session, before: datetime) -> None:
    """Delete sessions and links that ended before this time."""
    for delete in (_FORGET_SESSIONS, _FORGET_LINKS):
        await session.fetch(delete, before)
