"""The second factor of a person of a merchant's team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cuota.core.desk.person import Person
from cuota.db.desk import people, sessions
from cuota.db.desk.people import Factor
from cuota.db.desk.sessions import DeskSession
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.desk.totp import app_address, begin_app, check_code


@dataclass(slots=True)
class _DeskStore:
    session: Session
    visit: DeskSession
    bound: str
    new_bound: str
    new: bytes | None

    async def begin(self, sealed: bytes) -> bytes:
        return await sessions.begin_factor(
            self.session, self.visit.person.merchant_id, self.visit.session_hash, sealed
        )

    async def attempt(self, now: datetime, most: int, closed_until: datetime) -> Factor | None:
        person = self.visit.person
        return await people.try_factor(
            self.session, person.merchant_id, person.person_id, now, most, closed_until
        )

    async def used(self, step: int) -> bool:
        person = self.visit.person
        return await people.factor_used(self.session, person.merchant_id, person.person_id, step)

    async def set_up(self, sealed: bytes, step: int) -> bool:
        person = self.visit.person
        return await people.set_up_factor(self.session, person.merchant_id, person.person_id, sealed, step)


def _store(context: Context, visit: DeskSession) -> _DeskStore:
    bound, new = f"desk-factor:{visit.person.person_id}", f"desk-new-factor:{visit.session_id}"
    return _DeskStore(context.pool, visit, bound, new, visit.new_factor)


async def new_factor(context: Context, visit: DeskSession) -> str:
    """Return the secret of the app that this browser sets up."""
    return await begin_app(context, _store(context, visit))


def factor_address(context: Context, person: Person, secret: str) -> str:
    """Return the `otpauth://` address that sets up an app."""
    return app_address(context, person.email, secret)


async def check_factor(context: Context, visit: DeskSession, typed: str) -> None:
    """Check a code, and finish setting up a new app. Raises WrongCode."""
    await check_code(context, _store(context, visit), typed)
