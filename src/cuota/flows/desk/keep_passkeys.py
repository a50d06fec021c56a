"""The passkeys of a merchant's people: where they are stored, and signing in with one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.desk.passkey import MOST_PASSKEYS, Passkey
from cuota.core.desk.person import Person
from cuota.db.desk import passkeys, people, sessions
from cuota.db.row_security import everyone, narrow
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
from cuota.flows.desk.record import Actor, AuditNote, record
from cuota.flows.desk.sign_in import DeskVisit, Place, open_session

_ID_BYTES = 16


@dataclass(slots=True)
class DeskPasskeys:
    """The passkeys of one person, and the challenges of one browser.

    `person` is None while the person is unknown. Then `find` sets it to the person whom the passkey names. `session_hash` is set if
    the person is signed in.
    """

    context: Context
    browser_hash: bytes
    address: str
    person: Person | None = None
    merchant: str = ""
    session_hash: bytes | None = None

    async def hold(self, challenge: bytes, purpose: PasskeyPurpose, now: datetime) -> bool:
        """Store a challenge of this browser. Return False if there are too many challenges.

        The limit for an IP address applies only before the sign-in.
        """
        address = self.address if self.person is None else ""
        return await passkeys.hold(
            self.context.pool, self.browser_hash, challenge, purpose, address, now, now + CHALLENGE_LIFE,
            now - CHALLENGE_LIFE, MOST_CHALLENGES, MOST_OF_ADDRESS,
        )  # fmt: skip

    async def take(self, challenge: bytes, purpose: PasskeyPurpose, now: datetime) -> bool:
        """Use up a challenge of this browser. Return False if the challenge does not exist, was used, or has expired."""
        return await passkeys.take(self.context.pool, self.browser_hash, challenge, purpose, now)

    async def find(self, handle: bytes | None, credential_id: bytes) -> Passkey | None:
        """Return the passkey with this credential, if it belongs to the person whom the handle names."""
        if self.person is None:
            if handle is None or len(handle) != 2 * _ID_BYTES:
                return None
            merchant_id, person_id = UUID(bytes=handle[:_ID_BYTES]), UUID(bytes=handle[_ID_BYTES:])
            narrow(merchant_id)
            self.person = await people.read(self.context.pool, merchant_id, person_id)
            if self.person is None:
                return None
        elif handle is not None and handle != self.user().handle:
            return None
        return await passkeys.by_credential(self.context.pool, *self._ids(), credential_id)

    def _known(self) -> Person:
        assert self.person is not None, "nobody is known before a passkey was found"
        return self.person

    def _ids(self) -> tuple[UUID, UUID]:
        person = self._known()
        return person.merchant_id, person.person_id

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """Record a use. Return False if the authenticator's counter did not increase."""
        return await passkeys.used(self.context.pool, self._ids()[0], passkey.passkey_id, sign_count, now)

    async def copied(self, passkey: Passkey, sign_count: int) -> None:
        """Write into the audit log that the counter did not increase."""
        said = f"The counter did not rise: {passkey.sign_count}, then {sign_count}. Perhaps the passkey was copied."
        note = AuditNote("passkey.refused", _subject(passkey.name), said)
        await record(self.context, self._ids()[0], self._actor(), note)

    def user(self) -> PasskeyUser:
        """Return the person as an authenticator knows them."""
        person = self._known()
        handle = person.merchant_id.bytes + person.person_id.bytes
        return PasskeyUser(handle, f"{person.email} ({self.merchant})", f"{person.name}, {self.merchant}")

    def person_id(self) -> UUID:
        """Return the person's id."""
        return self._known().person_id

    def _actor(self) -> Actor:
        return Actor(self.person, self.address)

    async def mine(self) -> list[Passkey]:
        """Return the person's passkeys."""
        return await passkeys.of_person(self.context.pool, *self._ids())

    async def one(self, passkey_id: UUID) -> Passkey | None:
        """Return one of the person's passkeys, or None."""
        return await passkeys.read(self.context.pool, *self._ids(), passkey_id)

    async def add(self, new: Passkey) -> bool:
        """Add a passkey, with an entry in the audit log.

        Return False if the passkey already exists, or the person has too many. Raises PasskeyRefused if the session has ended.
        """
        merchant_id, person_id = self._ids()
        async with self.context.pool.session() as session, session.transaction():
            # A reset of the second factor removes the passkeys and ends the sessions. A passkey must not be added after that.
            if not await people.lock(session, merchant_id, person_id) or not await self._is_open(session):
                raise PasskeyRefused(NOT_ADDED)
            added = await passkeys.add(session, merchant_id, new, MOST_PASSKEYS)
            if added:
                note = AuditNote("passkey.add", _subject(new.name), after={"name": new.name})
                await record(self.context, merchant_id, self._actor(), note, session)
        return added

    async def _is_open(self, session: Session) -> bool:
        return self.session_hash is not None and await sessions.is_open(
            session, self._ids()[0], self.session_hash
        )

    async def rename(self, passkey: Passkey, name: str) -> None:
        """Give a passkey another name, with an entry in the audit log."""
        ids = self._ids()
        async with self.context.pool.session() as session, session.transaction():
            if await passkeys.rename(session, *ids, passkey.passkey_id, name):
                before, after = {"name": passkey.name}, {"name": name}
                note = AuditNote("passkey.rename", _subject(passkey.name), before=before, after=after)
                await record(self.context, ids[0], self._actor(), note, session)

    async def remove(self, passkey: Passkey) -> None:
        """Remove a passkey, with an entry in the audit log."""
        ids = self._ids()
        async with self.context.pool.session() as session, session.transaction():
            if await passkeys.remove(session, *ids, passkey.passkey_id):
                note = AuditNote("passkey.remove", _subject(passkey.name), before={"name": passkey.name})
                await record(self.context, ids[0], self._actor(), note, session)


def _subject(name: str) -> str:
    return f"Passkey {name}"


def passkeys_of_browser(context: Context, secret: str, address: str) -> DeskPasskeys:
    """Return the store of a browser that is not signed in, with the secret of its cookie."""
    return DeskPasskeys(context, context.vault.hash("desk-challenge", secret), address)


def passkeys_of_visit(context: Context, visit: DeskVisit, address: str) -> DeskPasskeys:
    """Return the store of a signed-in person."""
    browser_hash = context.vault.hash("desk-challenge", visit.secret)
    return DeskPasskeys(
        context, browser_hash, address, visit.person, visit.session.merchant, visit.session.session_hash
    )


async def enter_by_passkey(
    context: Context, store: DeskPasskeys, passkey: Passkey, before: DeskVisit | None, place: Place
) -> tuple[UUID, str]:
    """Open a session for the person whose passkey was checked. Return the merchant's id and the session's secret.

    Raises PasskeyRefused if the passkey was removed meanwhile.
    """
    person = store.person
    assert person is not None, "the passkey was checked"
    ids = person.merchant_id, person.person_id
    # The earlier session may be of another merchant.
    with everyone():
        async with context.pool.session() as session, session.transaction():
            if not await people.lock(session, *ids):
                raise PasskeyRefused(REFUSED)
            if await passkeys.read(session, *ids, passkey.passkey_id) is None:
                raise PasskeyRefused(REFUSED)
            secret = await open_session(context, session, person, place, proved=True)
        if before is not None:
            await sessions.end(context.pool, before.merchant_id, before.session.session_hash)
    return person.merchant_id, secret


async def prove_by_passkey(context: Context, visit: DeskVisit) -> None:
    """Record a fresh second factor, after the passkey was checked."""
    await sessions.proved(context.pool, visit.merchant_id, visit.session.session_hash, utc_now())
