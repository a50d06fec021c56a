"""The second factor of a person of the operator's team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cuota.db.desk.people import Factor
from cuota.db.operator import operator_sessions, operators
from cuota.db.operator.operator_sessions import OperatorSession
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.desk.totp import begin_app, check_code


@dataclass(slots=True)
class _OperatorStore:
    session: Session
    visit: OperatorSession
    bound: str
    new_bound: str
    new: bytes | None

    async def begin(self, sealed: bytes) -> bytes:
        return await operator_sessions.begin_factor(self.session, self.visit.session_hash, sealed)

    async def attempt(self, now: datetime, most: int, closed_until: datetime) -> Factor | None:
        return await operators.try_factor(self.session, self.visit.person.person_id, now, most, closed_until)

    async def used(self, step: int) -> bool:
        return await operators.factor_used(self.session, self.visit.person.person_id, step)

    async def set_up(self, sealed: bytes, step: int) -> bool:
        return await operators.set_up_factor(self.session, self.visit.person.person_id, sealed, step)


def _store(context: Context, visit: OperatorSession) -> _OperatorStore:
    bound, new = f"operator-factor:{visit.person.person_id}", f"operator-new-factor:{visit.session_id}"
    return _OperatorStore(context.pool, visit, bound, new, visit.new_factor)


async def new_operator_factor(context: Context, visit: OperatorSession) -> str:
    """Return the secret of the app that this browser sets up."""
    return await begin_app(context, _store(context, visit))


async def check_operator_factor(context: Context, visit: OperatorSession, typed: str) -> None:
    """Check a code, and finish setting up a new app. Raises WrongCode."""
    await check_code(context, _store(context, visit), typed)
