"""Signing in to the merchant's dashboard: an e-mailed link, and then a code of an authenticator app.

All times are of the real clock, so that moving the sandbox's clock changes no session.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.desk.person import Person
from cuota.db.desk import people, sessions
from cuota.db.desk.sessions import DeskSession, Link, NewSession
from cuota.db.row_security import everyone
from cuota.db.session import Session
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.factor import check_factor

LINK_LIFE = timedelta(minutes=15)
INVITATION_LIFE = timedelta(days=7)
SESSION_LIFE = timedelta(hours=12)
# The time between the link and the code of the authenticator app.
HALFWAY_LIFE = timedelta(minutes=15)
IDLE = timedelta(minutes=60)
# A second factor counts as fresh for this long (step-up).
FRESH = timedelta(minutes=5)
LINKS_AN_HOUR = 5
# The service records at most this often in the database that a session is in use.
SEEN_EVERY = timedelta(minutes=1)
assert SEEN_EVERY < IDLE


@dataclass(frozen=True, slots=True)
class Place:
    """The origin of a request: the browser's user agent, and the IP address."""

    browser: str
    address: str


@dataclass(frozen=True, slots=True)
class DeskVisit:
    """The session of one browser in the dashboard, as read at the start of a request."""

    session: DeskSession
    secret: str

    @property
    def person(self) -> Person:
        """The person of the session."""
        return self.session.person

    @property
    def merchant_id(self) -> UUID:
        """The merchant whose dashboard this is."""
        return self.session.person.merchant_id

    @property
    def signed_in(self) -> bool:
        """Whether the second factor was given."""
        return self.session.proved_at is not None

    def fresh(self, now: datetime) -> bool:
        """Whether the second factor is at most five minutes old. `now` is the time of the real clock."""
        return self.session.proved_at is not None and now - self.session.proved_at <= FRESH


async def ask_link(context: Context, email: str) -> None:
    """Queue an e-mail with a sign-in link for each team that has a person with this address.

    The response never tells whether such a person exists, because a job sends the e-mail later. A person has at most five links
    of the last hour that can still be used.
    """
    with everyone():
        for person in await people.by_email(context.pool, email):
            await make_link(context, person, mail=True)


@asynccontextmanager
async def transaction_of(context: Context, session: Session | None) -> AsyncIterator[Session]:
    """Yield the session of the caller's transaction, or if there is none, a session with an own transaction."""
    if session is not None:
        yield session
        return
    async with context.pool.session() as own, own.transaction():
        yield own


async def make_link(
    context: Context,
    person: Person,
    *,
    mail: bool,
    one_step: bool = False,
    life: timedelta = LINK_LIFE,
    session: Session | None = None,
) -> str | None:
    """Make a sign-in link, which works once. Return its address, or None if the person has too many or was removed.

    `one_step` (sandbox only): the link asks for no second factor. With `session`, the link is part of that session's transaction.
    """
    now, link_id = utc_now(), context.new_id()
    link = Link(link_id, person.person_id, now + life, one_step and context.settings.sandbox)
    most = LINKS_AN_HOUR if mail else 1000
    since = now - timedelta(hours=1)
    mail_at = now if mail else None

    async with transaction_of(context, session) as within:
        # Requests at the same moment wait for this lock, so that each of them counts the links of the others.
        added = await people.lock(within, person.merchant_id, person.person_id) and await sessions.add_link(
            within, person, link, now, mail_at, since, most
        )
    if not added:
        return None
    return link_address(context, person.merchant_id, link_id)


def link_address(context: Context, merchant_id: UUID, link_id: UUID) -> str:
    """Return the address of a link. Its code is a keyed hash of the link's id, so the database contains no code."""
    base = context.settings.public_url.rstrip("/")
    return f"{base}/desk/enter/{merchant_id}/{link_id}/{link_code(context, link_id)}"


def link_code(context: Context, link_id: UUID) -> str:
    """Return the code of a link."""
    return base64.urlsafe_b64encode(context.vault.hash("desk-link", str(link_id))).rstrip(b"=").decode()


async def read_link(context: Context, merchant_id: UUID, link_id: UUID, code: str) -> Person | None:
    """Return the person whom a link signs in, or None if the link is forged, was used, or has expired.

    Does not use the link up.
    """
    if not hmac.compare_digest(code.encode(), link_code(context, link_id).encode()):
        return None
    link = await sessions.read_link(context.pool, merchant_id, link_id, utc_now())
    return None if link is None else await people.read(context.pool, merchant_id, link.person_id)


async def enter(context: Context, merchant_id: UUID, link_id: UUID, code: str, place: Place) -> str | None:
    """Use up a link and open a session. Return the session's secret, or None if the link no longer works."""
    person = await read_link(context, merchant_id, link_id, code)
    if person is None:
        return None
    async with context.pool.session() as session, session.transaction():
        if not await people.lock(session, merchant_id, person.person_id):
            return None
        used = await sessions.use_link(session, merchant_id, link_id, utc_now())
        if used is None:
            return None
        _, one_step = used
        return await open_session(context, session, person, place, one_step=one_step, proved=one_step)


async def open_session(
    context: Context, session: Session, person: Person, place: Place, *, one_step: bool = False, proved: bool
) -> str:
    """Open a session and return its secret. `proved`: the person gave both factors.

    The caller's transaction has locked the person, and then checked the link, session or passkey with which the person enters. So a
    removal or a reset of the second factor either comes first, or ends the new session too.
    """
    secret, now = secrets.token_urlsafe(32), utc_now()
    new = NewSession(
        _hash(context, secret), context.new_id(), person.person_id,
        now + (SESSION_LIFE if proved else HALFWAY_LIFE), one_step, now if proved else None,
        place.browser[:200], place.address[:64],
    )  # fmt: skip
    await sessions.open_session(session, person.merchant_id, new, now)
    if proved:
        await people.joined(session, person.merchant_id, person.person_id, now)
    return secret


async def load_visit(context: Context, merchant_id: UUID, secret: str) -> DeskVisit | None:
    """Return the session of this browser, or None if the secret is forged or the session has ended."""
    now = utc_now()
    found = await sessions.read(context.pool, merchant_id, _hash(context, secret), now, now - IDLE)
    if found is None:
        return None
    if now - found.seen_at > SEEN_EVERY:
        await sessions.seen(context.pool, merchant_id, found.session_hash, now)
    return DeskVisit(found, secret)


async def finish(context: Context, visit: DeskVisit, typed: str, place: Place) -> str | None:
    """Check the code of the authenticator app and finish signing in. Raises WrongCode.

    Return the session's new secret, or None if the session has ended meanwhile.
    """
    await check_factor(context, visit.session, typed)
    ids = visit.merchant_id, visit.person.person_id
    async with context.pool.session() as session, session.transaction():
        if not await people.lock(session, *ids):
            return None
        if not await sessions.end(session, visit.merchant_id, visit.session.session_hash):
            return None
        return await open_session(context, session, visit.person, place, proved=True)


async def prove_again(context: Context, visit: DeskVisit, typed: str) -> None:
    """Check the code again, for an action that needs a fresh second factor. Raises WrongCode."""
    if not visit.session.one_step:
        await check_factor(context, visit.session, typed)
    await sessions.proved(context.pool, visit.merchant_id, visit.session.session_hash, utc_now())


async def leave(context: Context, visit: DeskVisit) -> None:
    """Sign out."""
    await sessions.end(context.pool, visit.merchant_id, visit.session.session_hash)


def _hash(context: Context, secret: str) -> bytes:
    return context.vault.hash("desk-session", secret)
