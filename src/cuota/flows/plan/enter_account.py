"""The consumer enters their own page: a phone number, a one-time code, and then an hour. All on the real clock."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cuota.core.checkout.texting import Limit
from cuota.core.consumer import is_us_number, typed_number
from cuota.db.plan import accounts
from cuota.db.plan.accounts import AccountSession
from cuota.flows.checkout.identify_consumer import CODE_LIFE, CODE_TRIES, CODES_A_SESSION, is_code
from cuota.flows.checkout.limit_texts import NOWHERE, Browser, count_code
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context, utc_now
from cuota.rails.unavailable import RailUnavailable

SESSION_LIFE = timedelta(hours=1)
_NOT_A_NUMBER = "Enter a US mobile number of ten digits, area code first."
_TOO_MANY = "Too many codes were asked for. Wait an hour and try again."
_NOT_SENT = "The message cannot be sent at the moment. Try again in a minute."


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
    await accounts.open_session(context.pool, _hash(context, secret), now, now + SESSION_LIFE)
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
    phone = typed_number(typed)
    if not is_us_number(phone):
        raise Problem({"phone": _NOT_A_NUMBER})
    now = utc_now()
    # A count of its own: this page is open to anybody, and nobody is to lock a person out of a checkout with it.
    if await count_code(context, "account-phone", phone, browser, now) is not None:
        raise Problem({"phone": _TOO_MANY})
    code = context.rails.message.new_code()
    code_hash = context.vault.code_hashes(f"{phone}:{code}")[0]
    session_hash = visit.session.session_hash
    if not await accounts.code_sent(
        context.pool, session_hash, phone, code_hash, now + CODE_LIFE, CODES_A_SESSION
    ):
        context.texted(Limit.BROWSER)
        raise Problem({"phone": _TOO_MANY})
    try:
        await context.rails.message.send_code(phone, code, context.settings.brand_name)
    except RailUnavailable:
        context.texted("failed")
        raise Problem({"phone": _NOT_SENT}) from None
    context.texted("sent")


async def check_account_code(context: Context, visit: Visit, typed: str) -> str:
    """Compare in constant time, at most five tries a code, counted before they are judged; raises Problem.

    Answers the session's new secret: one that somebody planted in this browser before is worthless from here on.
    """
    phone, session_hash = visit.session.phone, visit.session.session_hash
    tried = await accounts.try_code(context.pool, session_hash)
    if phone is None or tried is None:
        raise Problem(notice="Ask for a new code first.")
    tries, code_hash, ends_at = tried
    now = utc_now()
    if tries > CODE_TRIES:
        raise Problem({"code": "Too many wrong codes. Send a new one."})
    if now >= ends_at:
        raise Problem({"code": "This code is too old. Send a new one."})
    if not is_code(context, phone, "".join(typed.split()), code_hash):
        raise Problem({"code": "That code is not right. Check the message, or send a new one."})
    secret = new_secret()
    consumer_id, new_hash = context.vault.consumer_id(phone), _hash(context, secret)
    ends = now + SESSION_LIFE
    if not await accounts.verified(context.pool, session_hash, consumer_id, code_hash, new_hash, ends):
        raise Problem(notice="Ask for a new code first.")
    return secret


def _hash(context: Context, secret: str) -> bytes:
    return context.vault.hash("account-session", secret)
