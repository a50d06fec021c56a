"""The passkeys of the operator's people: where they are stored, and signing in with one.

The same rules as for a merchant's people (`flows/desk/keep_passkeys.py`), with other tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.desk.passkey import MOST_PASSKEYS, Passkey
from cuota.core.operator.person import Operator
from cuota.db.operator import identities, operator_passkeys, operator_sessions, operators
from cuota.db.session import Session
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.check_passkey import (
    CHALLENGE_LIFE,
    MOST_CHALLENGES,
    MOST_OF_ADDRESS,
    NOT_ADDED,
    REFUSED,
    PasskeyPurpose,
    PasskeyRefused,
    PasskeyUser,
)
from cuota.flows.desk.sign_in import Place
from cuota.flows.operator.log_action import OperatorActor, OperatorNote, log_action
from cuota.flows.operator.operator_sign_in import OperatorVisit, open_operator

_ID_BYTES = 16


@dataclass(slots=True)
class OperatorPasskeys:
    """The passkeys of one person, and the challenges of one browser.

    `person` is None while the person is unknown. Then `find` sets it to the person whom the passkey names. `session_hash` is set if
    the person is signed in.
    """

    context: Context
    browser_hash: bytes
    address: str
    person: Operator | None = None
    session_hash: bytes | None = None

    async def hold(self, challenge: bytes, purpose: PasskeyPurpose, now: datetime) -> bool:
        """Store a challenge of this browser. Return False if there are too many challenges.

        The limit for an IP address applies only before the sign-in.
        """
        address = self.address if self.person is None else ""
        return await operator_passkeys.hold(
            self.context.pool, self.browser_hash, challenge, purpose, address, now, now + CHALLENGE_LIFE,
            now - CHALLENGE_LIFE, MOST_CHALLENGES, MOST_OF_ADDRESS,
        )  # fmt: skip

    async def take(self, challenge: bytes, purpose: PasskeyPurpose, now: datetime) -> bool:
        """Use up a challenge of this browser. Return False if the challenge does not exist, was used, or has expired."""
        return await operator_passkeys.take(self.context.pool, self.browser_hash, challenge, purpose, now)

    async def find(self, handle: bytes | None, credential_id: bytes) -> Passkey | None:
        """Return the passkey with this credential, if it belongs to the person whom the handle names."""
        if self.person is None:
            if handle is None or len(handle) != _ID_BYTES:
                return None
            self.person = await operators.read(self.context.pool, UUID(bytes=handle))
            if self.person is None:
                return None
        elif handle is not None and handle != self.user().handle:
            return None
        return await operator_passkeys.by_credential(self.context.pool, self.person_id(), credential_id)

    def _known(self) -> Operator:
        assert self.person is not None, "nobody is known before a passkey was found"
        return self.person

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """Record a use. Return False if the authenticator's counter did not increase."""
        return await operator_passkeys.used(self.context.pool, passkey.passkey_id, sign_count, now)

    async def copied(self, passkey: Passkey, sign_count: int) -> None:
        """Write into the audit log that the counter did not increase."""
        said = f"The counter did not rise: {passkey.sign_count}, then {sign_count}. Perhaps the passkey was copied."
        note = OperatorNote("passkey.refused", _subject(passkey.name), said)
        await log_action(self.context, self._actor(), note)

    def user(self) -> PasskeyUser:
        """Return the person as an authenticator knows them."""
        person = self._known()
        return PasskeyUser(person.person_id.bytes, f"{person.email} (operator)", f"{person.name}, operator")

    def person_id(self) -> UUID:
        """Return the person's id."""
        return self._known().person_id

    def _actor(self) -> OperatorActor:
        return OperatorActor(self.person, self.address)

    async def mine(self) -> list[Passkey]:
        """Return the person's passkeys."""
        return await operator_passkeys.of_person(self.context.pool, self.person_id())

    async def one(self, passkey_id: UUID) -> Passkey | None:
        """Return one of the person's passkeys, or None."""
        return await operator_passkeys.read(self.context.pool, self.person_id(), passkey_id)

    async def add(self, new: Passkey) -> bool:
        """Add a passkey, with an entry in the audit log.

        Return False if the passkey already exists, or the person has too many. Raises PasskeyRefused if the session has ended.
        """
        async with self.context.pool.session() as session, session.transaction():
            # A reset of the second factor removes the passkeys and ends the sessions. A passkey must not be added after that.
            alive = await identities.lock_person(session, self.person_id())
            if not alive or not await self._is_open(session):
                raise PasskeyRefused(NOT_ADDED)
            added = await operator_passkeys.add(session, new, MOST_PASSKEYS)
            if added:
                note = OperatorNote("passkey.add", _subject(new.name), "", after={"name": new.name})
                await log_action(self.context, self._actor(), note, session)
        return added

    async def _is_open(self, session: Session) -> bool:
        return self.session_hash is not None and await operator_sessions.is_open(session, self.session_hash)

    async def rename(self, passkey: Passkey, name: str) -> None:
        """Give a passkey another name, with an entry in the audit log."""
        async with self.context.pool.session() as session, session.transaction():
            if await operator_passkeys.rename(session, self.person_id(), passkey.passkey_id, name):
                before, after = {"name": passkey.name}, {"name": name}
                note = OperatorNote("passkey.rename", _subject(passkey.name), "", before=before, after=after)
                await log_action(self.context, self._actor(), note, session)

    async def remove(self, passkey: Passkey) -> None:
        """Remove a passkey, with an entry in the audit log."""
        async with self.context.pool.session() as session, session.transaction():
            if await operator_passkeys.remove(session, self.person_id(), passkey.passkey_id):
                note = OperatorNote(
                    "passkey.remove", _subject(passkey.name), "", before={"name": passkey.name}
                )
                await log_action(self.context, self._actor(), note, session)


def _subject(name: str) -> str:
    return f"Passkey {name}"


def operator_passkeys_of_browser(context: Context, secret: str, address: str) -> OperatorPasskeys:
    """Return the store of a browser that is not signed in, with the secret of its cookie."""
    return OperatorPasskeys(context, context.vault.hash("operator-challenge", secret), address)


def operator_passkeys_of_visit(context: Context, visit: OperatorVisit, address: str) -> OperatorPasskeys:
    """Return the store of a signed-in person."""
    browser_hash = context.vault.hash("operator-challenge", visit.secret)
    return OperatorPasskeys(context, browser_hash, address, visit.person, visit.session.session_hash)


async def enter_operator_by_passkey(
    context: Context, store: OperatorPasskeys, passkey: Passkey, before: OperatorVisit | None, place: Place
) -> str:
    """Open a session for the person whose passkey was checked. Return the session's secret.

    Raises PasskeyRefused if the passkey was removed meanwhile.

    Where people must sign in at the provider, the passkey is only the second factor. There it raises PasskeyRefused if this
    person has not signed in at the provider in this browser.
    """
    rules = context.settings.provider_rules
    mine = (
        before is not None and store.person is not None and before.person.person_id == store.person.person_id
    )
    if rules is not None and rules.only and not mine:
        raise PasskeyRefused(f"Sign in with {rules.name} first. Your passkey comes after that.")
    person = store.person
    assert person is not None, "the passkey was checked"
    async with context.pool.session() as session, session.transaction():
        if not await identities.lock_person(session, person.person_id):
            raise PasskeyRefused(REFUSED)
        if await operator_passkeys.read(session, person.person_id, passkey.passkey_id) is None:
            raise PasskeyRefused(REFUSED)
        if before is not None:
            await operator_sessions.end(session, before.session.session_hash)
        return await open_operator(context, session, person, place, utc_now())


async def prove_operator_by_passkey(context: Context, visit: OperatorVisit) -> None:
    """Record a fresh second factor, after the passkey was checked."""
    await operator_sessions.proved(context.pool, visit.session.session_hash, utc_now())
