"""An emergency link for an owner, for when the company's provider is down or the owner has lost the second factor.

Only the command `cuota desk link --operator --emergency` makes such a link. The people who can run this command could also
write into the database directly, but the command writes an entry with the reason into the log.
"""

from __future__ import annotations

from cuota.core.desk.person import read_email
from cuota.core.operator.role import OperatorRole
from cuota.db.operator import operator_passkeys, operator_sessions, operators
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator.operator_sign_in import make_operator_link


async def make_emergency_link(context: Context, email: str, *, new_factor: bool) -> str:
    """Return a link that signs in an owner together with the second factor. It works once, for 15 minutes. Raises BadTeam.

    `new_factor` first deletes the owner's authenticator app and passkeys, and ends the owner's sessions.
    """
    person = await operators.by_email(context.pool, read_email(email) or "")
    if person is None or person.role is not OperatorRole.OWNER:
        raise BadTeam(f"No owner of the operator's team has the e-mail address {email}.")
    if new_factor:
        async with context.pool.session() as session, session.transaction():
            await operators.reset_factor(session, person.person_id)
            await operator_passkeys.remove_all(session, person.person_id)
            await operator_sessions.end_all(session, person.person_id, utc_now())
    address = await make_operator_link(context, person, mail=False, emergency=True)
    assert address is not None
    return address
