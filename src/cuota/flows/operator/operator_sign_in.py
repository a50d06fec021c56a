"""Signing in to the operator's dashboard: an e-mailed link, and then a code of an authenticator app.

The rules are the same as for a merchant's people (`flows/desk/sign_in.py`), with other tables, cookies and paths. Where people
must sign in at a company's provider (`flows/operator/enter_by_provider.py`), e-mailed links do not work.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.operator.person import Operator
from cuota.db.desk.sessions import Link, NewSession
from cuota.db.operator import identities, operator_sessions, operators
from cuota.db.operator.operator_sessions import OperatorSession
from cuota.db.session import Session
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.sign_in import (
    FRESH,
    HALFWAY_LIFE,
    IDLE,
    LINK_LIFE,
    LINKS_AN_HOUR,
    SEEN_EVERY,
    SESSION_LIFE,
    Place,
    transaction_of,
)
from cuota.flows.desk.totp import WrongCode
from cuota.flows.operator.operator_factor import check_operator_factor


@dataclass(frozen=True, slots=True)
class OperatorVisit:
    """The session of one browser in the operator's dashboard, as read at the start of a request."""

    session: OperatorSession
    secret: str

    @property
    def person(self) -> Operator:
        """The person of the session."""
        return self.session.person

    @property
    def signed_in(self) -> bool:
        """Whether the second factor was given."""
        return self.session.proved_at is not None

    @property
    def needs_passkey(self) -> bool:
        """Whether the person's only second factor is a passkey."""
        return self.session.has_passkey and not self.person.has_factor

    def fresh(self, now: datetime) -> bool:
        """Whether the second factor is at most five minutes old. `now` is the time of the real clock."""
        return self.session.proved_at is not None and now - self.session.proved_at <= FRESH


def provider_only(context: Context) -> bool:
    """Whether the company's provider is the only way to sign in."""
    rules = context.settings.provider_rules
    return rules is not None and rules.only


async def ask_operator_link(context: Context, email: str) -> None:
    """Queue an e-mail with a sign-in link if a person of the team has this address.

    A person has at most five links of the last hour that can still be used.
    """
    if provider_only(context):
        return
    person = await operators.by_email(context.pool, email)
    if person is not None:
        await make_operator_link(context, person, mail=True)


async def make_operator_link(
    context: Context,
    person: Operator,
    *,
    mail: bool,
    one_step: bool = False,
    emergency: bool = False,
    life: timedelta = LINK_LIFE,
    session: Session | None = None,
) -> str | None:
    """Make a sign-in link, which works once. Return its address, or None if the person has too many or was removed.

    `one_step` (sandbox only): the link asks for no second factor. `emergency`: the link also works where the provider is
    otherwise the only way to sign in. With `session`, the link is part of that session's transaction.
    """
    now, link_id = utc_now(), context.new_id()
    one_step = one_step and context.settings.sandbox
    link = Link(link_id, person.person_id, now + life, one_step, emergency=emergency)
    most = LINKS_AN_HOUR if mail else 1000
    since = now - timedelta(hours=1)
    mail_at = now if mail else None

    async with transaction_of(context, session) as within:
        # Requests at the same moment wait for this lock, so that each of them counts the links of the others.
        added = await identities.lock_person(within, person.person_id) and await operator_sessions.add_link(
            within, link, now, mail_at, since, most
        )
    if not added:
        return None
    return operator_link_address(context, link_id)


def operator_link_address(context: Context, link_id: UUID) -> str:
    """Return the address of a link. Its code is a keyed hash of the link's id, so the database contains no code."""
    return f"{context.settings.public_url.rstrip('/')}/operator/enter/{link_id}/{_code(context, link_id)}"


def _code(context: Context, link_id: UUID) -> str:
    return base64.urlsafe_b64encode(context.vault.hash("operator-link", str(link_id))).rstrip(b"=").decode()


async def read_operator_link(context: Context, link_id: UUID, code: str) -> Operator | None:
    """Return the person whom a link signs in, or None if the link is forged, was used, or has expired.

    Does not use the link up.
    """
    if not hmac.compare_digest(code.encode(), _code(context, link_id).encode()):
        return None
    link = await operator_sessions.read_link(context.pool, link_id, utc_now())
    if link is not None and provider_only(context) and not (link.one_step or link.emergency):
        return None
    return None if link is None else await operators.read(context.pool, link.person_id)


async def enter_operator(context: Context, link_id: UUID, code: str, place: Place) -> str | None:
    """Use up a link and open a session. Return the session's secret, or None if the link no longer works."""
    person = await read_operator_link(context, link_id, code)
    if person is None:
        return None
    async with context.pool.session() as session, session.transaction():
        if not await identities.lock_person(session, person.person_id):
            return None
        now = utc_now()
        one_step = await operator_sessions.use_link(session, link_id, now)
        if one_step is None:
            return None
        return await open_operator(
            context, session, person, place, now if one_step else None, one_step=one_step
        )


async def open_operator(
    context: Context,
    session: Session,
    person: Operator,
    place: Place,
    proved_at: datetime | None,
    *,
    one_step: bool = False,
) -> str:
    """Open a session and return its secret. `proved_at` is the time of the second factor, or None if it was not given yet.

    The caller's transaction has locked the person, and then checked the link, session, passkey or account with which the person
    enters. So a removal or a reset of the second factor either comes first, or ends the new session too.
    """
    secret, now = secrets.token_urlsafe(32), utc_now()
    new = NewSession(
        _hash(context, secret), context.new_id(), person.person_id,
        now + (SESSION_LIFE if proved_at else HALFWAY_LIFE), one_step, proved_at,
        place.browser[:200], place.address[:64],
    )  # fmt: skip
    await operator_sessions.open_session(session, new, now)
    if proved_at:
        await operators.joined(session, person.person_id, now)
    return secret


async def load_operator_visit(context: Context, secret: str) -> OperatorVisit | None:
    """Return the session of this browser, or None if the secret is forged or the session has ended."""
    now = utc_now()
    found = await operator_sessions.read(context.pool, _hash(context, secret), now, now - IDLE)
    if found is None:
        return None
    if now - found.seen_at > SEEN_EVERY:
        await operator_sessions.seen(context.pool, found.session_hash, now)
    return OperatorVisit(found, secret)


async def finish_sign_in(context: Context, visit: OperatorVisit, typed: str, place: Place) -> str | None:
    """Check the code of the authenticator app and finish signing in. Raises WrongCode.

    Return the session's new secret, or None if the session has ended meanwhile. A person who has a passkey and no app cannot set up
    an app here, because the app would replace the passkey.
    """
    if visit.needs_passkey:
        raise WrongCode("Use your passkey.")
    await check_operator_factor(context, visit.session, typed)
    async with context.pool.session() as session, session.transaction():
        if not await identities.lock_person(session, visit.person.person_id):
            return None
        if not await operator_sessions.end(session, visit.session.session_hash):
            return None
        return await open_operator(context, session, visit.person, place, utc_now())


async def prove_operator_again(context: Context, visit: OperatorVisit, typed: str) -> None:
    """Check the code again, for an action that needs a fresh second factor. Raises WrongCode."""
    if not visit.session.one_step:
        await check_operator_factor(context, visit.session, typed)
    await operator_sessions.proved(context.pool, visit.session.session_hash, utc_now())


async def leave_operator(context: Context, visit: OperatorVisit) -> None:
    """Sign out."""
    await operator_sessions.end(context.pool, visit.session.session_hash)


def _hash(context: Context, secret: str) -> bytes:
    return context.vault.hash("operator-session", secret)
