"""Codes of an authenticator app (TOTP, RFC 6238): setting up an app, and checking a code. No code works twice."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from typing import Protocol

import pyotp

from cuota.db.desk.people import Factor
from cuota.flows.context import Context, utc_now

TRIES = 5
CLOSED = timedelta(minutes=15)
_STEP = 30
# The app's clock may be one step ahead or behind.
_DRIFT = (0, -1, 1)


class WrongCode(Exception):
    """The code is wrong, was used before, or codes are blocked now. The text says what to do."""


WRONG = "This code is not right. Look at the app again: it shows a new code every 30 seconds."
USED = "This code was used before. Wait for the next code in your app."
ANOTHER = "Another browser has already set up an app for you. Enter the code of that app."
TOO_MANY = "Too many wrong codes. Wait 15 minutes, and then try again."


class FactorStore(Protocol):
    """The storage of one person's app, and of the app that one browser sets up.

    `bound` and `new_bound` are the texts to which the two encrypted secrets are bound. `new` is the secret of the app that this
    browser sets up, or None.
    """

    bound: str
    new_bound: str
    new: bytes | None

    async def begin(self, sealed: bytes) -> bytes:
        """Store the secret of an app that this browser begins to set up.

        Return the stored secret: the first one, if two requests arrive at once.
        """

    async def attempt(self, now: datetime, most: int, closed_until: datetime) -> Factor | None:
        """Count an attempt. Return None while codes are blocked."""

    async def used(self, step: int) -> bool:
        """Record the time step of a right code. Return False if the code was used before."""

    async def set_up(self, sealed: bytes, step: int) -> bool:
        """Store a new app whose first code was right. Return False if the person has got an app in the meantime."""


async def begin_app(context: Context, store: FactorStore) -> str:
    """Return the secret of the app that this browser sets up. A second call returns the same secret.

    Each browser gets a different secret. So if a thief with a stolen link sees a secret, the person's own browser never uses that
    secret.
    """
    sealed = store.new
    if sealed is None:
        sealed = await store.begin(context.vault.encrypt(pyotp.random_base32(), store.new_bound))
    return context.vault.decrypt(sealed, store.new_bound)


def app_address(context: Context, email: str, secret: str) -> str:
    """Return the `otpauth://` address that sets up an app."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=context.settings.brand_name)


async def check_code(context: Context, store: FactorStore, typed: str) -> None:
    """Check a code, and finish setting up a new app. Raises WrongCode.

    Each attempt is counted before the code is checked. After five wrong codes in a row, codes are blocked for 15 minutes.
    """
    now = utc_now()
    found = await store.attempt(now, TRIES, now + CLOSED)
    if found is None:
        raise WrongCode(TOO_MANY)
    if found.secret:
        secret = context.vault.decrypt(found.secret, store.bound)
    else:
        secret = await begin_app(context, store)
    step = _step_of(secret, "".join(typed.split()), now)
    if step is None:
        raise WrongCode(TOO_MANY if found.tries >= TRIES else WRONG)
    if found.secret and not await store.used(step):
        raise WrongCode(USED)
    if not found.secret and not await store.set_up(context.vault.encrypt(secret, store.bound), step):
        raise WrongCode(ANOTHER)


def _step_of(secret: str, typed: str, now: datetime) -> int | None:
    """Return the time step to which a code belongs, or None. The function compares all steps, in constant time."""
    app, current, found = pyotp.TOTP(secret), int(now.timestamp()) // _STEP, None
    for drift in _DRIFT:
        if hmac.compare_digest(app.at((current + drift) * _STEP).encode(), typed.encode()):
            found = current + drift
    return found
