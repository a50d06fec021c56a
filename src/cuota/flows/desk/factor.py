"""The second factor: a code of an authenticator app (TOTP, RFC 6238). No code works twice."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta

import pyotp

from cuota.core.desk.person import Person
from cuota.db.desk import people, sessions
from cuota.db.desk.sessions import DeskSession
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
ANOTHER = "Another browser set up an app for you meanwhile. Enter the code of that app."
TOO_MANY = "Too many wrong codes. Wait 15 minutes, and then try again."


async def new_factor(context: Context, visit: DeskSession) -> str:
    """Return the secret of the app that this browser sets up. A second call returns the same secret.

    Another browser gets another secret. So if a thief with a stolen link sees one, the person never sets up that one.
    """
    bound = f"desk-new-factor:{visit.session_id}"
    sealed = visit.new_factor
    if sealed is None:
        new = context.vault.encrypt(pyotp.random_base32(), bound)
        sealed = await sessions.begin_factor(context.pool, visit.person.merchant_id, visit.session_hash, new)
    return context.vault.decrypt(sealed, bound)


def factor_address(context: Context, person: Person, secret: str) -> str:
    """Return the `otpauth://` address that sets up an app."""
    return pyotp.TOTP(secret).provisioning_uri(name=person.email, issuer_name=context.settings.brand_name)


async def check_factor(context: Context, visit: DeskSession, typed: str) -> None:
    """Check a code, and finish setting up a new app. Raises WrongCode.

    Each try is counted before the code is checked. After five wrong codes in a row, no code is checked for 15 minutes.
    """
    now = utc_now()
    merchant_id, person_id = visit.person.merchant_id, visit.person.person_id
    found = await people.try_factor(context.pool, merchant_id, person_id, now, TRIES, now + CLOSED)
    if found is None:
        raise WrongCode(TOO_MANY)
    bound = f"desk-factor:{person_id}"
    secret = context.vault.decrypt(found.secret, bound) if found.secret else await new_factor(context, visit)
    step = _step_of(secret, "".join(typed.split()), now)
    if step is None:
        raise WrongCode(TOO_MANY if found.tries >= TRIES else WRONG)
    if found.secret:
        fresh = await people.factor_used(context.pool, merchant_id, person_id, step)
    else:
        sealed = context.vault.encrypt(secret, bound)
        fresh = await people.set_up_factor(context.pool, merchant_id, person_id, sealed, step)
    if not fresh:
        raise WrongCode(USED if found.secret else ANOTHER)


def _step_of(secret: str, typed: str, now: datetime) -> int | None:
    """Return the time step to which a code belongs, or None. All steps are compared, in constant time."""
    app, current, found = pyotp.TOTP(secret), int(now.timestamp()) // _STEP, None
    for drift in _DRIFT:
        if hmac.compare_digest(app.at((current + drift) * _STEP).encode(), typed.encode()):
            found = current + drift
    return found
