"""Sign-in links, and the sessions that they open. All times are of the real clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.desk.person import Person
from cuota.core.merchant import Onboarding
from cuota.db.cluster.across import claim_across, sweep
from cuota.db.desk.people import person_of
from cuota.db.old_rows import deleting_some
from cuota.db.session import Session

_ADD_LINK = """INSERT INTO desk_links (merchant_id, link_id, person_id, created_at, ends_at, mail_at, one_step)
    SELECT $1, $2, $3, $4, $5, $6, $7
    WHERE (SELECT count(*) FROM desk_links WHERE merchant_id = $1 AND person_id = $3 AND created_at > $8
        AND used_at IS NULL AND ends_at > $4) < $9
    RETURNING link_id"""
_LINK = """SELECT link_id, person_id, ends_at, one_step FROM desk_links
    WHERE merchant_id = $1 AND link_id = $2 AND used_at IS NULL AND ends_at > $3"""
# The mail of a used link has arrived, also if the mail server's answer was lost.
_USE_LINK = """UPDATE desk_links SET used_at = $3, mail_at = NULL
    WHERE merchant_id = $1 AND link_id = $2 AND used_at IS NULL AND ends_at > $3 RETURNING person_id, one_step"""
_MERCHANTS_WITH_MAIL = "SELECT DISTINCT merchant_id FROM desk_links WHERE mail_at <= $1"
# This claims the mail. If this process dies, or the mail server does not answer, the mail is retried: soon at first, and then every hour.
# The time of the retry is computed in the CTE: in SET, Citus refuses to compute a time from a column.
_MAIL = """WITH due AS MATERIALIZED (
    SELECT link_id, $3::timestamptz + least(tries, 120) * interval '30 seconds' AS again_at FROM desk_links
    WHERE merchant_id = $1 AND mail_at <= $2 ORDER BY mail_at LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE desk_links l SET mail_at = due.again_at, tries = least(tries + 1, 1000) FROM due
    WHERE l.merchant_id = $1 AND l.link_id = due.link_id AND l.mail_at <= $2
    RETURNING l.merchant_id, l.link_id, l.person_id, l.ends_at"""
_MAILED = "UPDATE desk_links SET mail_at = NULL WHERE merchant_id = $1 AND link_id = $2"
_OPEN = """INSERT INTO desk_sessions
    (merchant_id, session_hash, session_id, person_id, created_at, seen_at, ends_at, proved_at, one_step, browser, address)
    VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10)"""
_READ = """SELECT s.session_id, s.session_hash, s.seen_at, s.ends_at, s.proved_at, s.one_step, s.new_factor, p.merchant_id, p.person_id, p.email,
        p.name, p.role, p.invited_at, p.joined_at, p.factor IS NOT NULL AS has_factor, m.name AS merchant,
        m.onboarding, m.suspended_at IS NOT NULL AS suspended,
        EXISTS (SELECT FROM desk_passkeys k WHERE k.merchant_id = $1 AND k.person_id = s.person_id) AS has_passkey
    FROM desk_sessions s JOIN desk_people p ON p.merchant_id = $1 AND p.person_id = s.person_id
        JOIN merchants m ON m.merchant_id = $1
    WHERE s.merchant_id = $1 AND s.session_hash = $2 AND s.ends_at > $3 AND s.seen_at > $4 AND p.removed_at IS NULL"""
_IS_OPEN = "SELECT FROM desk_sessions WHERE merchant_id = $1 AND session_hash = $2"
_SEEN = "UPDATE desk_sessions SET seen_at = $3 WHERE merchant_id = $1 AND session_hash = $2"
# A sign-in deletes this row and opens a session with a new secret, so a secret that an attacker planted earlier is refused.
_DELETE = "DELETE FROM desk_sessions WHERE merchant_id = $1 AND session_hash = $2 RETURNING session_id"
_NEW_FACTOR = """UPDATE desk_sessions SET new_factor = coalesce(new_factor, $3)
    WHERE merchant_id = $1 AND session_hash = $2 RETURNING new_factor"""
_PROVED = "UPDATE desk_sessions SET proved_at = $3 WHERE merchant_id = $1 AND session_hash = $2"
_END_ONE = (
    """DELETE FROM desk_sessions WHERE merchant_id = $1 AND person_id = $2 AND session_id = $3 RETURNING 1"""
)
_END_ALL = "DELETE FROM desk_sessions WHERE merchant_id = $1 AND person_id = $2 RETURNING 1"
_END_LINKS = """UPDATE desk_links SET ends_at = $3, mail_at = NULL
    WHERE merchant_id = $1 AND person_id = $2 AND used_at IS NULL AND ends_at > $3"""
_OF_PERSON = """SELECT session_id, created_at, seen_at, browser, address FROM desk_sessions
    WHERE merchant_id = $1 AND person_id = $2 AND ends_at > $3 AND seen_at > $4 AND proved_at IS NOT NULL
    ORDER BY seen_at DESC, session_id"""
_OLD_SESSIONS = "SELECT DISTINCT merchant_id FROM desk_sessions WHERE ends_at < $1"
_OLD_LINKS = "SELECT DISTINCT merchant_id FROM desk_links WHERE ends_at < $1"
_FORGET_SESSIONS = deleting_some("desk_sessions", "session_hash", "ends_at < $2")
_FORGET_LINKS = deleting_some("desk_links", "link_id", "ends_at < $2")


@dataclass(frozen=True, slots=True)
class Link:
    """A sign-in link that can still be used, or whose mail is due.

    `emergency` (operator only): the link works even if the operator's people may sign in only at the company's provider.
    """

    link_id: UUID
    person_id: UUID
    ends_at: datetime
    one_step: bool = False
    emergency: bool = False


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to open."""

    session_hash: bytes
    session_id: UUID
    person_id: UUID
    ends_at: datetime
    one_step: bool
    proved_at: datetime | None
    browser: str
    address: str


@dataclass(frozen=True, slots=True)
class DeskSession:
    """A browser's session. `proved_at` is the time of the last second factor; None before the person is signed in.

    `new_factor` is the encrypted secret of an authenticator app that this browser sets up. `has_passkey`: the person has one.
    `merchant` is the merchant's name; `onboarding` and `suspended` determine the merchant's current permissions.
    """

    session_id: UUID
    session_hash: bytes
    seen_at: datetime
    ends_at: datetime
    proved_at: datetime | None
    one_step: bool
    new_factor: bytes | None
    person: Person
    merchant: str
    has_passkey: bool
    onboarding: Onboarding
    suspended: bool


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session in the list of a person's sessions."""

    session_id: UUID
    created_at: datetime
    seen_at: datetime
    browser: str
    address: str


async def add_link(
    session: Session,
    person: Person,
    link: Link,
    now: datetime,
    mail_at: datetime | None,
    since: datetime,
    most: int,
) -> bool:
    """Add a link, unless this person got `most` links after `since`. With `mail_at`, a job mails the link."""
    row = await session.fetchrow(
        _ADD_LINK, person.merchant_id, link.link_id, person.person_id, now, link.ends_at, mail_at, link.one_step, since, most
    )  # fmt: skip
    return row is not None


async def read_link(session: Session, merchant_id: UUID, link_id: UUID, now: datetime) -> Link | None:
    """Return a link that can still be used, or None."""
    row = await session.fetchrow(_LINK, merchant_id, link_id, now)
    return None if row is None else Link(*row)


async def use_link(
    session: Session, merchant_id: UUID, link_id: UUID, now: datetime
) -> tuple[UUID, bool] | None:
    """Use up a link. Return its person and `one_step`, or None if it was used before or has expired."""
    row = await session.fetchrow(_USE_LINK, merchant_id, link_id, now)
    return None if row is None else (row["person_id"], row["one_step"])


async def claim_mail(
    session: Session, now: datetime, lease: timedelta, limit: int
) -> list[tuple[UUID, Link]]:
    """Claim at most `limit` links whose mail is due, with their merchants, in random order of the merchants.

    Links that are not reported by `mailed` are due again when the lease ends, or later after several tries.
    """
    rows = await claim_across(session, _MERCHANTS_WITH_MAIL, _MAIL, now, lease, limit)
    return [(row["merchant_id"], Link(row["link_id"], row["person_id"], row["ends_at"])) for row in rows]


async def mailed(session: Session, merchant_id: UUID, link_id: UUID) -> None:
    """Record that the mail was sent, or will not be retried."""
    await session.fetchrow(_MAILED, merchant_id, link_id)


async def open_session(session: Session, merchant_id: UUID, new: NewSession, now: datetime) -> None:
    """Open a session."""
    await session.fetchrow(
        _OPEN, merchant_id, new.session_hash, new.session_id, new.person_id, now, new.ends_at, new.proved_at,
        new.one_step, new.browser, new.address,
    )  # fmt: skip


async def read(
    session: Session, merchant_id: UUID, session_hash: bytes, now: datetime, seen_after: datetime
) -> DeskSession | None:
    """Return a browser's session with its person.

    Return None if it has ended or timed out, or if the person was removed.
    """
    row = await session.fetchrow(_READ, merchant_id, session_hash, now, seen_after)
    if row is None:
        return None
    return DeskSession(
        row["session_id"], row["session_hash"], row["seen_at"], row["ends_at"], row["proved_at"], row["one_step"],
        row["new_factor"], person_of(row), row["merchant"], row["has_passkey"], Onboarding(row["onboarding"]),
        row["suspended"],
    )  # fmt: skip


async def is_open(session: Session, merchant_id: UUID, session_hash: bytes) -> bool:
    """Return whether nobody has ended the session of a browser."""
    return await session.fetchrow(_IS_OPEN, merchant_id, session_hash) is not None


async def seen(session: Session, merchant_id: UUID, session_hash: bytes, now: datetime) -> None:
    """Record that the session is in use."""
    await session.fetchrow(_SEEN, merchant_id, session_hash, now)


async def begin_factor(session: Session, merchant_id: UUID, session_hash: bytes, new: bytes) -> bytes:
    """Store the encrypted secret of an app that this browser begins to set up.

    Returns the stored secret: the first one, if two requests arrive at once. If the session has just ended, returns `new`.
    """
    row = await session.fetchrow(_NEW_FACTOR, merchant_id, session_hash, new)
    return new if row is None else bytes(row["new_factor"])


async def proved(session: Session, merchant_id: UUID, session_hash: bytes, now: datetime) -> None:
    """Record a second factor in a session that was signed in before."""
    await session.fetchrow(_PROVED, merchant_id, session_hash, now)


async def end(session: Session, merchant_id: UUID, session_hash: bytes) -> bool:
    """End a browser's session. Return False if another request has already ended it."""
    return await session.fetchrow(_DELETE, merchant_id, session_hash) is not None


async def end_one(session: Session, merchant_id: UUID, person_id: UUID, session_id: UUID) -> bool:
    """End one session of a person. Return False if there is none."""
    return await session.fetchrow(_END_ONE, merchant_id, person_id, session_id) is not None


async def end_all(session: Session, merchant_id: UUID, person_id: UUID, now: datetime) -> int:
    """End all sessions and links of a person. Return how many sessions there were."""
    await session.fetchrow(_END_LINKS, merchant_id, person_id, now)
    return len(await session.fetch(_END_ALL, merchant_id, person_id))


async def of_person(
    session: Session, merchant_id: UUID, person_id: UUID, now: datetime, seen_after: datetime
) -> list[ShownSession]:
    """Return a person's sessions, beginning with the one that was used last."""
    return [
        ShownSession(*row) for row in await session.fetch(_OF_PERSON, merchant_id, person_id, now, seen_after)
    ]


async def forget(session: Session, before: datetime) -> int:
    """Delete sessions and links that ended before this time, some of each merchant. Return how many were deleted."""
    deleted = await sweep(session, _OLD_SESSIONS, _FORGET_SESSIONS, before)
    return deleted + await sweep(session, _OLD_LINKS, _FORGET_LINKS, before)
