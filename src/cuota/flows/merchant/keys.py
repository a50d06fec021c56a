"""The token issuer's keys: RSA, one algorithm, rotated without downtime."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc.jwk import KeySet, RSAKey

from cuota.db.merchant import credentials
from cuota.db.merchant.credentials import StoredKey
from cuota.db.vault import Vault
from cuota.flows.context import Context, utc_now

# RFC 9068 obliges issuers and resource servers to RS256; nothing else is accepted.
ALGORITHM = "RS256"
BITS = 2048
TOKEN_LIFE = timedelta(hours=24)
# A new key is published this long before it signs, so that nobody meets a key id that they cannot find.
NOTICE = timedelta(minutes=10)
RELOAD_SECONDS = 30.0
# Every process has read a new key before the key signs.
assert NOTICE.total_seconds() > RELOAD_SECONDS


def _made(key_id: str) -> RSAKey:
    return RSAKey.generate_key(BITS, {"kid": key_id, "use": "sig", "alg": ALGORITHM}, private=True)


def _opened(vault: Vault, stored: StoredKey) -> RSAKey:
    pem = vault.decrypt(stored.private_key, f"signing-key:{stored.key_id}")
    # Looking for its primes anew would hold up everything else for a tenth of a second: we made it, and the vault has
    # just shown that nobody changed it.
    key = load_pem_private_key(pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, RSAPrivateKey)
    return RSAKey(key, key, {"kid": stored.key_id, "use": "sig", "alg": ALGORITHM})


async def rotate_keys(context: Context, *, at_once: bool = False) -> str:
    """Add a signing key and let the others verify until their last token has ended; answers its id."""
    now = utc_now()
    active = now if at_once else now + NOTICE
    key_id = f"{now:%Y%m%d}-{context.new_id().hex[-8:]}"
    pem = _made(key_id).as_pem(private=True).decode()
    await credentials.add_key(
        context.pool, key_id, context.vault.encrypt(pem, f"signing-key:{key_id}"), active
    )
    await credentials.retire_others(context.pool, key_id, active + TOKEN_LIFE + NOTICE)
    return key_id


class Keys:
    """The keys as this process knows them, read again every half minute and when an unknown key id comes by."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stored: list[tuple[StoredKey, RSAKey]] = []
        self._read_at = 0.0

    async def load(self, *, older_than: float = RELOAD_SECONDS) -> None:
        """Read the keys if what is known is older than so many seconds."""
        if self._stored and time.monotonic() - self._read_at < older_than:
            return
        known = {stored.key_id: key for stored, key in self._stored}
        stored = await credentials.read_keys(self._context.pool, utc_now())
        vault = self._context.vault
        self._stored = [(item, known.get(item.key_id) or _opened(vault, item)) for item in stored]
        self._read_at = time.monotonic()

    def signer(self, now: datetime) -> RSAKey:
        """The newest key that is active."""
        active = [key for stored, key in self._stored if stored.active_at <= now]
        return active[-1]

    def find(self, key_id: str) -> RSAKey | None:
        """The key with this id, while it verifies."""
        now = utc_now()
        for stored, key in self._stored:
            if stored.key_id == key_id and (stored.retired_at is None or stored.retired_at > now):
                return key
        return None

    def public(self) -> dict[str, object]:
        """The JSON Web Key Set, public halves only."""
        return dict(KeySet([key for _, key in self._stored]).as_dict(private=False))


async def ensure_key(context: Context) -> None:
    """The first start makes the first key; a second process that does so too does no harm.

    Opens what is stored, so that a wrong CUOTA_SECRET_KEY stops the start (WrongKey) and not the first payment.
    """
    stored = await credentials.read_keys(context.pool, utc_now())
    if not stored:
        await rotate_keys(context, at_once=True)
    for item in stored:
        _opened(context.vault, item)
