"""The sandbox's card processor and its disputed test card: when a charge is disputed, and how the dispute ends.

A dispute is opened seven days after the charge. The first evidence is judged a day later, and wins if its text contains
`winning_evidence`. Without an answer, the dispute is lost at the network's deadline; it is lost at once if it is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from cuota.rails.card.protocol import CardEvent, CardEventKind, ChargebackReply
from cuota.rails.stores import RailDatabase

DISPUTED_AFTER = timedelta(days=7)
RESPOND_WITHIN = timedelta(days=9)
JUDGED_AFTER = timedelta(days=1)
WINS = "winning_evidence"
REASON = "product_not_received"

# $1 and $2 are the first and the last moment. A dispute is opened DISPUTED_AFTER after its charge.
_DISPUTED = """SELECT c.key, c.amount, c.merchant_id, c.order_id, c.created_at, d.evidence, d.submitted_at, d.accepted_at
    FROM card_simulator.charges c JOIN card_simulator.cards k USING (token)
        LEFT JOIN card_simulator.disputes d ON d.charge = c.key
    WHERE k.behaviour = 'disputed' AND c.approved AND c.created_at <= $1 ORDER BY c.created_at"""
# A dispute that has ended accepts no answer. $6 is the time until the deadline, and $7 the time until the judgment.
_ANSWER = """INSERT INTO card_simulator.disputes AS d (charge, evidence, files, submitted_at, accepted_at)
    SELECT c.key, $2::text, $3, CASE WHEN $4 THEN NULL ELSE $5::timestamptz END, CASE WHEN $4 THEN $5::timestamptz END
    FROM card_simulator.charges c WHERE c.key = $1 AND c.created_at + $6::interval > $5
    ON CONFLICT (charge) DO UPDATE SET accepted_at = excluded.accepted_at
        WHERE d.accepted_at IS NULL AND excluded.accepted_at IS NOT NULL AND d.submitted_at + $7::interval > $5"""


async def answer(books: RailDatabase, reply: ChargebackReply, now: datetime) -> None:
    """Record evidence or acceptance.

    As with a real network, only the first evidence counts, and nothing counts after the end.
    """
    charge = reply.reference.removeprefix("dp_")
    deadline = DISPUTED_AFTER + RESPOND_WITHIN
    await books.execute(
        _ANSWER, charge, reply.text, len(reply.files), reply.accepts, now, deadline, JUDGED_AFTER
    )


async def events_since(books: RailDatabase, since: datetime, now: datetime) -> list[CardEvent]:
    """Return the events of disputes after `since`."""
    rows = await books.fetch(_DISPUTED, now - DISPUTED_AFTER)
    events = [event for row in rows for event in _events_of(row)]
    return [event for event in events if since < event.at <= now]


def _events_of(row: Mapping[str, Any]) -> list[CardEvent]:
    opened_at = row["created_at"] + DISPUTED_AFTER
    closed_at = opened_at + RESPOND_WITHIN
    won = False
    if row["submitted_at"] is not None:
        closed_at, won = row["submitted_at"] + JUDGED_AFTER, WINS in (row["evidence"] or "")
    if row["accepted_at"] is not None:
        closed_at, won = min(closed_at, row["accepted_at"]), False
    return [
        _event(row, CardEventKind.DISPUTE_OPENED, opened_at, "needs_response"),
        _event(row, CardEventKind.DISPUTE_CLOSED, closed_at, "won" if won else "lost"),
    ]


def _event(row: Mapping[str, Any], kind: CardEventKind, at: datetime, status: str) -> CardEvent:
    return CardEvent(
        f"{kind}_{row['key']}", kind, at, row["merchant_id"], row["order_id"], row["key"], amount=row["amount"],
        reason=REASON, reference=f"dp_{row['key'].hex}", status=status,
        respond_by=row["created_at"] + DISPUTED_AFTER + RESPOND_WITHIN,
    )  # fmt: skip
