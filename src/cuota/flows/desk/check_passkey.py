"""Passkeys (WebAuthn) of both dashboards: adding a passkey, and checking a browser's answer with a passkey.

Each answer belongs to a challenge that the service stored before. A challenge belongs to one browser and one purpose, expires
after five minutes, and works once. Each answer must prove that the authenticator verified the person by a fingerprint, a face
or a PIN. So one answer is two factors: the device, and the person.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar
from uuid import UUID

import webauthn
from webauthn.helpers import (
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from cuota.core.desk.passkey import (
    MOST_CREDENTIAL_BYTES,
    MOST_PASSKEYS,
    Passkey,
    read_passkey_name,
    relying_party,
)
from cuota.flows.context import Context, utc_now

CHALLENGE_LIFE = timedelta(minutes=5)
# The limits within five minutes: for one browser, and for one IP address, which a whole office may share.
MOST_CHALLENGES = 20
MOST_OF_ADDRESS = 100
_MILLISECONDS = int(CHALLENGE_LIFE.total_seconds() * 1000)
_VERIFIED = UserVerificationRequirement.REQUIRED
log = logging.getLogger("cuota.passkeys")
T = TypeVar("T")


class PasskeyPurpose(StrEnum):
    """The purpose of a challenge. An answer for one purpose is not accepted for another."""

    SIGN_IN = "sign-in"
    STEP_UP = "step-up"
    ADD = "add"


class PasskeyRefused(Exception):
    """The passkey is not accepted. The text says what to do. `name` is the form's field, or empty."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


# The text is the same for every reason, so that an attacker does not learn which passkeys exist.
REFUSED = "This passkey was not accepted. Try again, or sign in in another way."
NOT_ADDED = "The passkey was not added. Try again."
HAVE = "This passkey is already there."
TOO_MANY = f"You have {MOST_PASSKEYS} passkeys, which is the most. Remove one first."
TOO_OFTEN = "Too many tries. Wait five minutes, or sign in in another way."
NAME = "Give the passkey a name of at most 100 characters."


@dataclass(frozen=True, slots=True)
class PasskeyUser:
    """A person as an authenticator knows them. `handle` is the user handle of the person's passkeys: random ids."""

    handle: bytes
    name: str
    display_name: str


class PasskeyStore(Protocol):
    """The storage of a dashboard's passkeys, and of the challenges of one of its browsers.

    During a sign-in the person is unknown, and `find` identifies the person from the handle. Otherwise the store belongs to one
    person.
    """

    async def hold(self, challenge: bytes, purpose: PasskeyPurpose, now: datetime) -> bool:
        """Store a challenge of this browser. Return False if there are too many challenges."""

    async def take(self, challenge: bytes, purpose: PasskeyPurpose, now: datetime) -> bool:
        """Use up a challenge of this browser. Return False if the challenge does not exist, was used, or has expired."""

    async def find(self, handle: bytes | None, credential_id: bytes) -> Passkey | None:
        """Return the passkey with this credential, if it belongs to the person whom the handle names."""

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """Record a use. Return False if the authenticator's counter did not increase."""

    async def copied(self, passkey: Passkey, sign_count: int) -> None:
        """Write into the audit log that the counter did not increase."""

    def user(self) -> PasskeyUser:
        """Return the person."""

    async def mine(self) -> list[Passkey]:
        """Return the person's passkeys."""

    async def one(self, passkey_id: UUID) -> Passkey | None:
        """Return one of the person's passkeys, or None."""

    async def add(self, new: Passkey) -> bool:
        """Add a passkey, with an entry in the audit log.

        Return False if the passkey already exists, or the person has too many.
        """

    async def rename(self, passkey: Passkey, name: str) -> None:
        """Give a passkey another name, with an entry in the audit log."""

    async def remove(self, passkey: Passkey) -> None:
        """Remove a passkey, with an entry in the audit log."""

    def person_id(self) -> UUID:
        """Return the person's id."""


def _known(passkeys: list[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(id=each.credential_id) for each in passkeys]


async def _hold(store: PasskeyStore, challenge: bytes, purpose: PasskeyPurpose) -> None:
    if not await store.hold(challenge, purpose, utc_now()):
        raise PasskeyRefused(TOO_OFTEN)


async def begin_adding(context: Context, store: PasskeyStore) -> str:
    """Return the options for `navigator.credentials.create`, as JSON. Raises PasskeyRefused."""
    user, mine = store.user(), await store.mine()
    if len(mine) >= MOST_PASSKEYS:
        raise PasskeyRefused(TOO_MANY)
    options = webauthn.generate_registration_options(
        rp_id=relying_party(context.settings.public_url).host,
        rp_name=context.settings.brand_name,
        user_id=user.handle,
        user_name=user.name,
        user_display_name=user.display_name,
        timeout=_MILLISECONDS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=_VERIFIED
        ),
        # The browser refuses an authenticator that already contains one of these passkeys.
        exclude_credentials=_known(mine),
    )
    await _hold(store, options.challenge, PasskeyPurpose.ADD)
    return webauthn.options_to_json(options)


async def finish_adding(context: Context, store: PasskeyStore, text: str, typed_name: str) -> None:
    """Check the result of `navigator.credentials.create`, and add the passkey. Raises PasskeyRefused."""
    name, now = read_passkey_name(typed_name), utc_now()
    if name is None:
        raise PasskeyRefused(NAME, "name")
    answer = _safely(lambda: parse_registration_credential_json(text), NOT_ADDED)
    challenge = _challenge_of(answer.response.client_data_json, NOT_ADDED)
    if not await store.take(challenge, PasskeyPurpose.ADD, now):
        raise PasskeyRefused(NOT_ADDED)
    ours = relying_party(context.settings.public_url)
    new = _safely(
        lambda: webauthn.verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=ours.host,
            expected_origin=ours.origin,
            require_user_verification=True,
        ),
        NOT_ADDED,
    )
    if len(new.credential_id) > MOST_CREDENTIAL_BYTES:
        raise PasskeyRefused(NOT_ADDED)
    passkey = Passkey(
        context.new_id(), store.person_id(), new.credential_id, new.credential_public_key, new.sign_count, name, now, None
    )  # fmt: skip
    if not await store.add(passkey):
        raise PasskeyRefused(HAVE)


async def begin_using(context: Context, store: PasskeyStore, purpose: PasskeyPurpose) -> str:
    """Return the options for `navigator.credentials.get`, as JSON. Raises PasskeyRefused.

    For a sign-in, the options name no passkey: the authenticator offers its passkeys for this host.
    """
    options = webauthn.generate_authentication_options(
        rp_id=relying_party(context.settings.public_url).host,
        timeout=_MILLISECONDS,
        allow_credentials=[] if purpose is PasskeyPurpose.SIGN_IN else _known(await store.mine()),
        user_verification=_VERIFIED,
    )
    await _hold(store, options.challenge, purpose)
    return webauthn.options_to_json(options)


async def check_passkey(context: Context, store: PasskeyStore, purpose: PasskeyPurpose, text: str) -> Passkey:
    """Check the result of `navigator.credentials.get`, and return its passkey. Raises PasskeyRefused.

    The challenge is used up first, so nobody can try two answers to one challenge.
    """
    now = utc_now()
    answer = _safely(lambda: parse_authentication_credential_json(text), REFUSED)
    challenge = _challenge_of(answer.response.client_data_json, REFUSED)
    if not await store.take(challenge, purpose, now):
        raise PasskeyRefused(REFUSED)
    passkey = await store.find(answer.response.user_handle, answer.raw_id)
    if passkey is None:
        raise PasskeyRefused(REFUSED)
    ours = relying_party(context.settings.public_url)
    proved = _safely(
        lambda: webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=ours.host,
            expected_origin=ours.origin,
            credential_public_key=passkey.public_key,
            # The database compares the counter, so that two concurrent answers cannot both be accepted.
            credential_current_sign_count=0,
            require_user_verification=True,
        ),
        REFUSED,
    )
    if not await store.used(passkey, proved.new_sign_count, now):
        log.warning(
            "the counter of a passkey did not rise: perhaps the passkey was copied",
            extra={"facts": {"passkeyId": str(passkey.passkey_id), "counter": proved.new_sign_count}},
        )
        await store.copied(passkey, proved.new_sign_count)
        raise PasskeyRefused(REFUSED)
    return passkey


def _safely(read: Callable[[], T], words: str) -> T:
    """Return the result of the library's check. Raises PasskeyRefused for every error in the answer."""
    try:
        return read()
    except Exception as wrong:
        # An answer that no browser sends can raise other exceptions than the library's own.
        raise PasskeyRefused(words) from wrong


def _challenge_of(client_data: bytes, words: str) -> bytes:
    """Return the challenge that an answer names. Refuse an answer that was made in another site's frame."""
    said = _safely(lambda: parse_client_data_json(client_data), words)
    if said.cross_origin:
        raise PasskeyRefused(words)
    return said.challenge
