"""The token issuer's signing keys, and their rotation without downtime.

New keys are on the curve P-256 (ES256): a signature takes a twentieth of the time of one with RSA. An RSA key (RS256) verifies
until the last token that it signed has expired.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc.jwk import ECKey, KeySet, RSAKey

from cuota.db.merchant import credentials
from cuota.db.merchant.credentials import StoredKey
from cuota.db.vault import Vault, WrongKey
from cuota.flows.context import Context, utc_now

log = logging.getLogger("cuota.keys")
Algorithm = Literal["ES256", "RS256"]
# RFC 9068 requires issuers and resource servers to support RS256. Each key is for one algorithm; a token whose header names
# another algorithm than its key's is refused.
ALGORITHMS: tuple[Algorithm, ...] = ("ES256", "RS256")
BITS = 2048
TOKEN_LIFE = timedelta(hours=24)
# A new key is published this long before it signs, so that every verifier has read it before the first token uses it.
NOTICE = timedelta(minutes=10)
# The first P-256 key of an existing installation waits this long: processes of the previous release cannot verify its tokens,
# so all of them must have been upgraded before it signs.
UPGRADE = timedelta(hours=24)
RELOAD_SECONDS = 30.0
# Every process reads a new key before the key signs.
assert NOTICE.total_seconds() > RELOAD_SECONDS

UNREADABLE = (
    "a token-signing key is encrypted with a secret key that this process does not have: set CUOTA_SECRET_KEY_OLD on this machine to the"
    " CUOTA_SECRET_KEY of the machine that made the signing key, and restart"
)

SigningKey = ECKey | RSAKey


def _made(key_id: str, algorithm: Algorithm) -> SigningKey:
    if algorithm == "ES256":
        return ECKey.generate_key("P-256", {"kid": key_id, "use": "sig", "alg": algorithm}, private=True)
    return RSAKey.generate_key(BITS, {"kid": key_id, "use": "sig", "alg": algorithm}, private=True)


def _opened(vault: Vault, stored: StoredKey) -> SigningKey:
    pem = vault.decrypt(stored.private_key, f"signing-key:{stored.key_id}")
    # Checking an RSA key would block the event loop for a tenth of a second. It is not necessary: we created the key, and the
    # vault's decryption has just proved that nobody changed it.
    key = load_pem_private_key(pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    if stored.algorithm == "ES256":
        assert isinstance(key, EllipticCurvePrivateKey)
        return ECKey(key, key, {"kid": stored.key_id, "use": "sig", "alg": stored.algorithm})
    assert isinstance(key, RSAPrivateKey)
    return RSAKey(key, key, {"kid": stored.key_id, "use": "sig", "alg": stored.algorithm})


async def rotate_keys(
    context: Context, *, at_once: bool = False, algorithm: Algorithm = "ES256", notice: timedelta = NOTICE
) -> str:
    """Add a signing key and return its id. The other keys still verify until their last token has expired."""
    now = utc_now()
    active = now if at_once else now + notice
    key_id = f"{now:%Y%m%d}-{context.new_id().hex[-8:]}"
    pem = _made(key_id, algorithm).as_pem(private=True).decode()
    sealed = context.vault.encrypt(pem, f"signing-key:{key_id}")
    await credentials.add_key(context.pool, key_id, algorithm, sealed, active)
    await credentials.retire_others(context.pool, key_id, active + TOKEN_LIFE + NOTICE)
    return key_id


class Keys:
    """The copy of the keys in one process. It is read again every half minute, and when a token has an unknown key id."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stored: list[tuple[StoredKey, SigningKey]] = []
        self._unreadable: list[StoredKey] = []
        self._read_at = 0.0

    async def load(self, *, older_than: float = RELOAD_SECONDS) -> None:
        """Read the keys if the copy is older than this many seconds.

        A key that this process cannot decrypt does not stop the others. Raises WrongKey if it can decrypt none.
        """
        if self._stored and time.monotonic() - self._read_at < older_than:
            return
        known = {stored.key_id: key for stored, key in self._stored}
        stored = await credentials.read_keys(self._context.pool, utc_now())
        vault = self._context.vault
        found: list[tuple[StoredKey, SigningKey]] = []
        unreadable: list[StoredKey] = []
        for item in stored:
            try:
                found.append((item, known.get(item.key_id) or _opened(vault, item)))
            except WrongKey:
                log.error(UNREADABLE, extra={"facts": {"keyId": item.key_id}})  # noqa: TRY400 - the text says it all
                unreadable.append(item)
        if unreadable and not found:
            raise WrongKey(UNREADABLE)
        self._stored, self._unreadable = found, unreadable
        self._read_at = time.monotonic()

    def signer(self, now: datetime) -> SigningKey:
        """Return the newest active key. Raises WrongKey if this process cannot decrypt it: an older key may retire before its tokens.

        If this machine's clock is behind the clock of the machine that made the first key, no key is active yet. The oldest one signs:
        every verifier has it.
        """
        active = [key for stored, key in self._stored if stored.active_at <= now]
        newest = max((stored.active_at for stored, _ in self._stored if stored.active_at <= now), default=now)
        if any(newest <= each.active_at <= now for each in self._unreadable):
            raise WrongKey(UNREADABLE)
        return active[-1] if active else self._stored[0][1]

    def find(self, key_id: str) -> SigningKey | None:
        """Return the key with this id, or None if there is none or it no longer verifies.

        Raises WrongKey if this process cannot decrypt it: the token may be valid, so it must not be refused.
        """
        now = utc_now()
        for stored, key in self._stored:
            if stored.key_id == key_id and (stored.retired_at is None or stored.retired_at > now):
                return key
        if any(each.key_id == key_id for each in self._unreadable):
            raise WrongKey(UNREADABLE)
        return None

    def public(self) -> dict[str, object]:
        """Return the JSON Web Key Set. It contains public keys only."""
        return dict(KeySet([key for _, key in self._stored]).as_dict(private=False))


async def ensure_key(context: Context) -> None:
    """Create the first key at the first start, and the first P-256 key at the first start after an upgrade.

    Two processes may do this at the same moment. The function also decrypts the stored keys, so that a wrong CUOTA_SECRET_KEY
    is found at the start (WrongKey), not at the first payment.
    """
    stored = await credentials.read_keys(context.pool, utc_now())
    for item in stored:
        _opened(context.vault, item)
    if not stored:
        await rotate_keys(context, at_once=True)
    elif not await credentials.had_p256_key(context.pool):
        await rotate_keys(context, notice=UPGRADE)
