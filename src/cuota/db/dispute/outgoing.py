"""Merchants' answers to chargebacks that must be sent to the card processor.

A worker claims an answer, and sends it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.cluster.across import claim_across
from cuota.db.session import Session

# The lease of a claim. It is longer than any call to a rail.
LEASE = timedelta(seconds=120)

_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM dispute_evidence WHERE send_at <= $1"
# A claim sets send_at to the end of its lease. The UPDATE repeats the condition, because SKIP LOCKED alone claims some rows twice.
_CLAIM = """
WITH due AS MATERIALIZED (
    SELECT dispute_id, evidence_id FROM dispute_evidence WHERE merchant_id = $1 AND send_at <= $2
    ORDER BY send_at LIMIT $4 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE dispute_evidence e SET send_at = $3, tries = least(tries + 1, 1000) FROM due
    WHERE e.merchant_id = $1 AND e.dispute_id = due.dispute_id AND e.evidence_id = due.evidence_id AND e.send_at <= $2
    RETURNING e.dispute_id, e.evidence_id, e.order_id, e.text, e.tries
)
SELECT $1::uuid AS merchant_id, e.order_id, e.dispute_id, e.evidence_id, e.text, e.tries, d.reference, d.status, c.card_token
FROM claimed e JOIN disputes d ON d.merchant_id = $1 AND d.dispute_id = e.dispute_id
    LEFT JOIN charges c ON c.merchant_id = $1 AND c.order_id = d.order_id AND c.charge_id = d.charge_id
"""
_SENT = """UPDATE dispute_evidence SET sent_at = $4, send_at = NULL
    WHERE merchant_id = $1 AND dispute_id = $2 AND evidence_id = $3"""
_LATER = (
    "UPDATE dispute_evidence SET send_at = $4 WHERE merchant_id = $1 AND dispute_id = $2 AND evidence_id = $3"
)


@dataclass(frozen=True, slots=True)
class OutgoingAnswer:
    """A claimed answer. `text` is encrypted. `tries` counts this claim too."""

    merchant_id: UUID
    order_id: UUID
    dispute_id: UUID
    evidence_id: UUID
    text: bytes | None
    tries: int
    reference: str
    status: str
    card_token: str | None


async def claim(session: Session, now: datetime, limit: int) -> list[OutgoingAnswer]:
    """Claim at most `limit` answers that are due."""
    rows = await claim_across(session, _MERCHANTS_DUE, _CLAIM, now, LEASE, limit)
    return [OutgoingAnswer(*row) for row in rows]


async def sent(session: Session, due: OutgoingAnswer, now: datetime) -> None:
    """Record that the processor has the answer."""
    await session.fetchrow(_SENT, due.merchant_id, due.dispute_id, due.evidence_id, now)


async def later(session: Session, due: OutgoingAnswer, at: datetime) -> None:
    """Schedule the next attempt for this time."""
    await session.fetchrow(_LATER, due.merchant_id, due.dispute_id, due.evidence_id, at)
