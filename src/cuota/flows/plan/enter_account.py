"""Login to the consumer's account page: a phone number, a one-time code, and then a session of one hour.

All times use the real clock, so that moving the sandbox's clock changes no session.
"""

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
from cuota.flows.context import Context

SESSION_LIFE = timedelta(hours=1)
assert SESSION_LIFE > CODE_LIFE
# The account page counts codes separately. Anybody can request codes on it, which must not block a person's checkout.
_PURPOSE = Purpose(
    "account-phone",
    too_many="Too many codes were requested. Wait an hour and try again.",
    not_sent="We cannot send the message right now. Try again in a minute.",
)


@dataclass(frozen=True, slots=True)
class Visit:
    """The session of one browser on the account page, as read at the start of a request."""

    session: AccountSession
    secret: str

    @property
    def consumer_id(self) -> UUID | None:
        """The consumer whose number this browser has verified, or None before the code is entered."""
        return self.session.consumer_id


def new_secret() -> str:
    """Return a new session secret. Only the browser stores it. The database has no row until the consumer enters a number."""
    return secrets.token_urlsafe(32)


async def open_account(context: Context, secret: str) -> Visit:
    """Return the session of a browser that enters a number.

    Create the session unless it exists. It exists after a second click.
    """
    now = context.real_now()
    await accounts.open_session(
        context.pool, _hash(context, secret), now, now + SESSION_LIFE, now + CODE_LIFE
    )
    visit = await load_account(context, secret)
    assert visit is not None
    return visit


async def load_account(context: Context, secret: str) -> Visit | None:
    """Return the session of this browser, or None if the secret is forged or the session has ended."""
    found = await accounts.read_session(context.pool, _hash(context, secret), context.real_now())
    return None if found is None else Visit(found, secret)


async def leave_account(context: Context, visit: Visit) -> None:
    """Sign out. The secret is no longer valid."""
    await accounts.end(context.pool, visit.session.session_hash)


async def send_account_code(context: Context, visit: Visit, typed: str, browser: Browser = NOWHERE) -> None:
    """Text a code to the number even if no consumer has it, so that nobody can find out whether one does. Raises Problem."""
    session_hash = visit.session.session_hash

    async def keep(phone: str, code_hash: bytes, ends_at: datetime) -> bool:
        return await accounts.code_sent(
            context.pool, session_hash, phone, code_hash, ends_at, CODES_A_SESSION
        )

    await text_code(context, _PURPOSE, typed, browser, keep, codes_sent=visit.session.codes_sent)


async def check_account_code(context: Context, visit: Visit, typed: str) -> str:
    """Check a code in constant time. Raises Problem.

    A code allows at most five attempts, and an attempt is counted before it is checked. Returns the session's new
    secret. If an attacker planted the old secret in this browser, that secret is no longer accepted.
    """
    session_hash = visit.session.session_hash
    tried = await accounts.try_code(context.pool, session_hash)
    phone, code_hash = right_code(context, visit.session.phone, tried, typed)
    secret = new_secret()
    consumer_id, new_hash = context.vault.consumer_id(phone), _hash(context, secret)
    ends = context.real_now() + SESSION_LIFE
    if not await accounts.verified(context.pool, session_hash, consumer_id, code_hash, new_hash, ends):
        raise ask_first()
    return secret


def _hash(context: Context, secret: str) -> bytes:
    return context.vault.hash("account-session", secret)
