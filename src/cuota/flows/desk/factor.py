"""The second factor: a code of an authenticator app (TOTP, RFC 6238). No code works twice."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta

import pyotp

from cuota.core.desk.person import Person
from cuota.db.desk import people
from cuota.flows.context import Context, utc_now

TRIES = 5
CLOSED = timedelta(minutes=15)
_STEP = 30
# The app's clock may be one step ahead or behind.
_DRIFT = (0, -1, 1)


class WrongCode(Exception):
    """The code is wrong, was used before, or is not checked now. The text says what to do."""


WRONG = "This code is not right. Look at the app again: it shows a new code every 30 seconds."
USED = "This code was used before. Wait for the next code in your app."
TOO_MANY = "Too many wrong codes. Wait 15 minutes, and then try again."


async def new_factor(context: Context, person: Person) -> str:
    """Return the secret of a new app, which is stored until its first code proves it. A second call returns the same secret."""
    bound = f"desk-factor:{person.person_id}"
    found = await people.factor(context.pool, person.merchant_id, person.person_id)
    if found is not None and found.new is not None:
        return context.vault.decrypt(found.new, bound)
    secret = pyotp.random_base32()
    await people.begin_factor(
        context.pool, person.merchant_id, person.person_id, context.vault.encrypt(secret, bound)
    )
    return secret


def factor_address(context: Context, person: Person, secret: str) -> str:
    """Return the `otpauth://` address that sets up an app."""
    return pyotp.TOTP(secret).provisioning_uri(name=person.email, issuer_name=context.settings.brand_name)


async def check_factor(context: Context, person: Person, typed: str) -> None:
    """Check a code, and finish setting up a new app. Raises WrongCode.

    Each try is counted before the code is checked. After five wrong codes in a row, no code is checked for 15 minutes.
    """
    now = utc_now()
    merchant_id, person_id = person.merchant_id, person.person_id
    found = await people.try_factor(context.pool, merchant_id, person_id, now, TRIES, now + CLOSED)
    if found is None:
        raise WrongCode(TOO_MANY)
    stored = found.secret or found.new
    if stored is None:
        raise WrongCode(WRONG)
    secret = context.vault.decrypt(stored, f"desk-factor:{person_id}")
    step = _step_of(secret, "".join(typed.split()), now)
    if step is None:
        raise WrongCode(TOO_MANY if found.tries >= TRIES else WRONG)
    if not await people.factor_used(context.pool, merchant_id, person_id, step):
        raise WrongCode(USED)


def _step_of(secret: str, typed: str, now: datetime) -> int | None:
    """Return the time step to which a code belongs, or None. All steps are compared, in constant time."""
    app, current, found = pyotp.TOTP(secret), int(now.timestamp()) // _STEP, None
    for drift in _DRIFT:
        if hmac.compare_digest(app.at((current + drift) * _STEP).encode(), typed.encode()):
            found = current + drift
    return found
