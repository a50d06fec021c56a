"""The consumer enters their own page: a phone number, a one-time code, and then an hour. All on the real clock."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.plan import accounts
from cuota.db.plan.accounts import AccountSession
from cuota.flows.checkout.limit_texts import NOWHERE, Browser
from cuota.flows.checkout.prove_number import (
    CODE_LIFE,
    CODES_A_SESSION,
    Purpose,
    ask_first,
    right_code,
    text_code,
)
from cuota.flows.context import Context, utc_now

SESSION_LIFE = timedelta(hours=1)
assert SESSION_LIFE > CODE_LIFE
# A count of its own: this page is open to anybody, and nobody is to lock a person out of a checkout with it.
_PURPOSE = Purpose(
    "account-phone",
    too_many="Too many codes were asked for. Wait an hour and try again.",
    not_sent="The message cannot be sent at the moment. Try again in a minute.",
)


@dataclass(frozen=True, slots=True)
class Visit:
    """One browser on the consumer's page, as read at the start of a request."""

    session: AccountSession
    secret: str

    @property
    def consumer_id(self) -> UUID | None:
        """Who it proved to be."""
        return self.session.consumer_id


def new_secret() -> str:
    """A session secret, which only the browser keeps. Nothing is written down until a number is given."""
    return secrets.token_urlsafe(32)


async def open_account(context: Context, secret: str) -> Visit:
    """The visit of a browser that gives a number: a new one, unless it has one already (a second click has)."""
    now = utc_now()
    await accounts.open_session(
        context.pool, _hash(context, secret), now, now + SESSION_LIFE, now + CODE_LIFE
    )
    visit = await load_account(context, secret)
    assert visit is not None
    return visit


async def load_account(context: Context, secret: str) -> Visit | None:
    """The visit of this browser; None for a forged or ended one."""
    found = await accounts.read_session(context.pool, _hash(context, secret), utc_now())
    return None if found is None else Visit(found, secret)


async def leave_account(context: Context, visit: Visit) -> None:
    """Sign out: the secret is worthless from here on."""
    await accounts.end(context.pool, visit.session.session_hash)


async def send_account_code(context: Context, visit: Visit, typed: str, browser: Browser = NOWHERE) -> None:
    """Text a code to the number, whether anybody here knows it or not; raises Problem."""
    session_hash = visit.session.session_hash

    async def keep(phone: str, code_hash: bytes, ends_at: datetime) -> bool:
        return await accounts.code_sent(
            context.pool, session_hash, phone, code_hash, ends_at, CODES_A_SESSION
        )

    await text_code(context, _PURPOSE, typed, browser, keep)


async def check_account_code(context: Context, visit: Visit, typed: str) -> str:
    """Compare in constant time, at most five tries a code, counted before they are judged; raises Problem.

    Answers the session's new secret: one that somebody planted in this browser before is worthless from here on.
    """
    session_hash = visit.session.session_hash
    tried = await accounts.try_code(context.pool, session_hash)
    phone, code_hash = right_code(context, visit.session.phone, tried, typed)
    secret = new_secret()
    consumer_id, new_hash = context.vault.consumer_id(phone), _hash(context, secret)
    ends = utc_now() + SESSION_LIFE
    if not await accounts.verified(context.pool, session_hash, consumer_id, code_hash, new_hash, ends):
        raise ask_first()
    return secret


def _hash(context: Context, secret: str) -> bytes:
    return context.vault.hash("account-session", secret)
