"""The sandbox's card network, as a merchant's card processor sees it: the tables behind a simulated virtual card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from cuota.rails.issuing import details_text
from cuota.rails.stores import RailDatabase, RailVault

# After this time a worker continues the clearing. flows/checkout/clear_card.py asserts that a running request ends sooner.
LEASE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Presented:
    """The data that a person typed into a merchant's card form. `repr` shows none of it."""

    number: str = field(repr=False)
    cvc: str = field(repr=False)
    month: int = field(repr=False)
    year: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """A card that the network has issued, with its key.

    `fits` means that the security code and expiration date were right.
    """

    key: UUID
    merchant_id: UUID
    order_id: UUID
    fits: bool
    month: int
    year: int


@dataclass(frozen=True, slots=True)
class Authorization:
    """The network's answer to an authorization. The amount is in cents. `reason` is the code of a decline."""

    authorization_id: UUID
    amount: int
    approved: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Clearing:
    """A capture, reversal or refund of an authorization, in cents. `lease` is the claim of the process that works on it."""

    clearing_id: UUID
    authorization_id: UUID
    kind: str
    reference: str
    amount: int
    state: str
    lease: UUID
    merchant_id: UUID
    order_id: UUID


_FIND = """
SELECT key, merchant_id, order_id, details_hash, expires_month, expires_year
FROM issuing_simulator.cards WHERE number_hash = $1
"""
_EARLIER = """SELECT authorization_id, amount, approved, reason FROM issuing_simulator.authorizations
    WHERE key = $1 AND reference = $2"""
# If many requests arrive at the same moment, the row's lock lets one through. The others find the card already used.
_AUTHORIZE = """
WITH taken AS (
    UPDATE issuing_simulator.cards SET authorised = $3
    WHERE key = $2 AND $5::text IS NULL AND authorised = 0 AND $3 <= spend_limit RETURNING key
)
INSERT INTO issuing_simulator.authorizations (authorization_id, key, reference, amount, approved, reason)
SELECT $1, key, $4, $3, EXISTS (SELECT FROM taken), CASE
    WHEN EXISTS (SELECT FROM taken) THEN NULL
    WHEN $5 IS NOT NULL THEN $5
    WHEN authorised = 0 AND $3 > spend_limit THEN 'exceeds_limit' ELSE 'already_used' END
FROM issuing_simulator.cards WHERE key = $2
ON CONFLICT (key, reference) DO NOTHING RETURNING authorization_id, amount, approved, reason
"""
_COLUMNS = "c.clearing_id, c.authorization_id, c.kind, c.reference, c.amount, c.state, c.lease"
_CLEARING = f"""
SELECT {_COLUMNS}, k.merchant_id, k.order_id, c.try_at FROM issuing_simulator.clearings c
JOIN issuing_simulator.authorizations a USING (authorization_id) JOIN issuing_simulator.cards k USING (key)
WHERE c.authorization_id = $1 AND c.kind = $2 AND c.reference = $3
"""
_LEFT = """
SELECT k.merchant_id, k.order_id, CASE WHEN $2 = 'refund' THEN captured - refunded - going_back
    ELSE least(authorised - captured - reversed - held, greatest(spend_limit - captured - held, 0)) END AS open
FROM issuing_simulator.authorizations a JOIN issuing_simulator.cards k USING (key)
WHERE a.authorization_id = $1 AND a.approved
"""
_ROOM = {
    "capture": "held = held + $5",
    "reverse": "held = held + $5",
    "refund": "going_back = going_back + $5",
}
_WITHIN = {
    "capture": "least(authorised - captured - reversed - held, spend_limit - captured - held) >= $5",
    "reverse": "least(authorised - captured - reversed - held, spend_limit - captured - held) >= $5",
    "refund": "captured - refunded - going_back >= $5",
}
_BEGIN = """
WITH room AS (
    UPDATE issuing_simulator.cards k SET {room} FROM issuing_simulator.authorizations a
    WHERE a.authorization_id = $2 AND a.approved AND k.key = a.key AND {within} RETURNING k.key
)
INSERT INTO issuing_simulator.clearings
    (clearing_id, authorization_id, kind, reference, amount, state, lease, try_at, created_at)
SELECT $1, $2, $3, $4, $5, 'pending', $6, $7, $8 FROM room RETURNING clearing_id
"""
_TAKE_OVER = """UPDATE issuing_simulator.clearings SET lease = $2, try_at = $4
    WHERE clearing_id = $1 AND state = 'pending' AND try_at <= $3 RETURNING clearing_id"""
_DUE = f"""
WITH due AS MATERIALIZED (
    SELECT clearing_id FROM issuing_simulator.clearings WHERE try_at <= $1 ORDER BY try_at LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE issuing_simulator.clearings c SET lease = gen_random_uuid(), try_at = $2
FROM due, issuing_simulator.authorizations a, issuing_simulator.cards k
WHERE c.clearing_id = due.clearing_id
    AND c.try_at <= $1 AND a.authorization_id = c.authorization_id AND k.key = a.key
RETURNING {_COLUMNS}, k.merchant_id, k.order_id, c.try_at
"""
# The card is locked before the clearing, as in _BEGIN, which waits for the clearing if it has the same reference.
_CARD = """WITH card AS MATERIALIZED (
    SELECT k.key FROM issuing_simulator.clearings c JOIN issuing_simulator.authorizations a USING (authorization_id)
        JOIN issuing_simulator.cards k USING (key) WHERE c.clearing_id = $1 FOR NO KEY UPDATE OF k
)"""
_DONE = f"""
{_CARD}, done AS (
    UPDATE issuing_simulator.clearings c SET state = 'done', try_at = NULL FROM card
    WHERE c.clearing_id = $1 AND c.state = 'pending' RETURNING c.kind, c.amount
)
UPDATE issuing_simulator.cards k SET
    held = held - CASE WHEN d.kind <> 'refund' THEN d.amount ELSE 0 END,
    going_back = going_back - CASE WHEN d.kind = 'refund' THEN d.amount ELSE 0 END,
    captured = captured + CASE WHEN d.kind = 'capture' THEN d.amount ELSE 0 END,
    reversed = reversed + CASE WHEN d.kind = 'reverse' THEN d.amount ELSE 0 END,
    refunded = refunded + CASE WHEN d.kind = 'refund' THEN d.amount ELSE 0 END
FROM done d, card WHERE k.key = card.key RETURNING 1
"""
_DROPPED = f"""
{_CARD}, dropped AS (
    DELETE FROM issuing_simulator.clearings c USING card
    WHERE c.clearing_id = $1 AND c.state = 'pending' AND c.lease = $2 RETURNING c.kind, c.amount
)
UPDATE issuing_simulator.cards k SET
    held = held - CASE WHEN d.kind <> 'refund' THEN d.amount ELSE 0 END,
    going_back = going_back - CASE WHEN d.kind = 'refund' THEN d.amount ELSE 0 END
FROM dropped d, card WHERE k.key = card.key RETURNING 1
"""


class CardNetwork:
    """Each call is one statement with its own transaction, like a call to a company outside."""

    def __init__(self, books: RailDatabase, vault: RailVault) -> None:
        self._books = books
        self._vault = vault

    async def find(self, card: Presented) -> NetworkCard | None:
        """Return the issued card with its merchant and order, or None for a number that was never issued."""
        row = await self._books.fetchrow(_FIND, self._vault.hash("issued-number", card.number))
        if row is None:
            return None
        typed = details_text(card.number, card.cvc, card.month, card.year)
        fits = self._vault.hash("issued-card", typed) == row["details_hash"]
        month, year = row["expires_month"], row["expires_year"]
        return NetworkCard(row["key"], row["merchant_id"], row["order_id"], fits, month, year)

    async def earlier(self, key: UUID, reference: str) -> Authorization | None:
        """Return the earlier answer to the same reference, if there is one."""
        row = await self._books.fetchrow(_EARLIER, key, reference)
        return None if row is None else Authorization(**row)

    async def authorize(
        self, key: UUID, amount: int, reason: str | None, reference: str | None
    ) -> Authorization:
        """Approve or decline, and store the answer, once for each reference. A given `reason` forces a decline."""
        row = await self._books.fetchrow(_AUTHORIZE, uuid4(), key, amount, reference, reason)
        if row is not None:
            return Authorization(**row)
        assert reference is not None
        earlier = await self.earlier(key, reference)
        assert earlier is not None
        return earlier

    async def clearing(self, authorization_id: UUID, kind: str, reference: str) -> Clearing | None:
        """Return the clearing with this kind and reference, if there is one."""
        row = await self._books.fetchrow(_CLEARING, authorization_id, kind, reference)
        return None if row is None else _clearing(row)

    async def left(self, authorization_id: UUID, kind: str) -> tuple[UUID, UUID, int] | None:
        """Return the merchant, the order, and the cents left for one more clearing of this kind; None if there is no such authorization."""
        row = await self._books.fetchrow(_LEFT, authorization_id, kind)
        return None if row is None else (row["merchant_id"], row["order_id"], row["open"])

    async def begin(self, clearing: Clearing, now: datetime) -> bool:
        """Reserve the amount and store the clearing before the order is changed. Returns False if too little is left.

        Raises asyncpg's UniqueViolationError if the same key exists already.
        """
        sql = _BEGIN.format(room=_ROOM[clearing.kind], within=_WITHIN[clearing.kind])
        values = (clearing.clearing_id, clearing.authorization_id, clearing.kind, clearing.reference)
        row = await self._books.fetchrow(sql, *values, clearing.amount, clearing.lease, now + LEASE, now)
        return row is not None

    async def take_over(self, clearing: Clearing, lease: UUID, now: datetime) -> bool:
        """Claim a clearing whose process died. Returns False if another process works on it, or it is done."""
        row = await self._books.fetchrow(_TAKE_OVER, clearing.clearing_id, lease, now, now + LEASE)
        return row is not None

    async def due(self, now: datetime, limit: int) -> list[Clearing]:
        """Claim clearings that were not finished, for a background job."""
        return [_clearing(row) for row in await self._books.fetch(_DUE, now, now + LEASE, limit)]

    async def done(self, clearing: Clearing) -> None:
        """Record that the order has applied the clearing."""
        await self._books.fetchrow(_DONE, clearing.clearing_id)

    async def dropped(self, clearing: Clearing) -> None:
        """Delete a clearing that the order refused. The reserved amount and the key can be used again."""
        await self._books.fetchrow(_DROPPED, clearing.clearing_id, clearing.lease)


def _clearing(row: Mapping[str, Any]) -> Clearing:
    return Clearing(**{name: row[name] for name in Clearing.__slots__})
