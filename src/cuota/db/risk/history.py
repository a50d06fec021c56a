"""Reads the data for a risk decision in one round trip: the consumer's history at all merchants, and recent signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.risk.decision import SANDBOX_DECLINES
from cuota.core.risk.facts import BlockFact, History, MerchantDisputes, Velocity
from cuota.core.risk.signal import SignalKind
from cuota.db.old_rows import AT_ONCE
from cuota.db.pool import Row
from cuota.db.session import Session

# The reasons of declined charges by which card rails say that the cardholder disputed earlier ones.
DISPUTED = ("card_stolen", "disputed", "fraudulent")
DECLINED_DAYS = timedelta(days=30)
# A decision uses a merchant's captures and disputes of this many days. Background jobs count them for each day.
DISPUTE_DAYS = 90
# Higher than the limit of any policy. A signal that was seen very often is counted only up to here.
MOST_SEEN = 1000

# A LIMIT or an aggregate inside a LATERAL part makes the planner use the primary key, one order at a time, whatever its
# statistics say. Orders declined by a sandbox test name (one of $7) do not count. A payment that a bank has taken back, or may
# take back, is a dispute and no paid installment. A payment is overdue if a charge of it failed: payments that a dispute pauses, or
# that nobody tried to charge, are not the consumer's fault.
# $3 is the consumer, $4 the service's time, $5 the start of the period in which declined orders count.
_PAST = """
WITH agreed AS MATERIALIZED (
    SELECT p.merchant_id, p.order_id, p.agreed_at, p.payer, o.status, o.whole, o.charging, o.decided, i.late, i.overdue, i.unpaid,
        i.paid - b.charges AS paid, c.disputes + b.chargebacks AS disputes
    FROM plans p CROSS JOIN LATERAL (
        SELECT status, amount + fee AS whole, charging IS NOT NULL AS charging, CASE WHEN status = 'Declined' THEN EXISTS (
            SELECT FROM decisions d WHERE d.merchant_id = p.merchant_id AND d.order_id = p.order_id AND NOT d.approved
        ) ELSE false END AS decided FROM orders
        WHERE merchant_id = p.merchant_id AND order_id = p.order_id LIMIT 1
    ) o CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE charge_id IS NOT NULL) AS paid,
            count(*) FILTER (WHERE charge_id IS NOT NULL AND failures > 0) AS late,
            count(*) FILTER (WHERE charge_id IS NULL AND amount + fee > 0 AND failures > 0) AS overdue,
            coalesce(sum(amount + fee) FILTER (WHERE charge_id IS NULL), 0) AS unpaid
        FROM installments WHERE merchant_id = p.merchant_id AND order_id = p.order_id
    ) i CROSS JOIN LATERAL (
        SELECT count(*) AS disputes FROM charges
        WHERE merchant_id = p.merchant_id AND order_id = p.order_id AND reason = ANY ($6::text[])
    ) c CROSS JOIN LATERAL (
        SELECT count(*) AS chargebacks, count(DISTINCT charge_id) AS charges FROM disputes
        WHERE merchant_id = p.merchant_id AND order_id = p.order_id AND kind = 'chargeback' AND (outcome IS NULL OR outcome = 'lost')
    ) b WHERE p.consumer_id = $3 AND (p.merchant_id, p.order_id) <> ($1, $2)
), past AS (
    SELECT count(*) AS approved_orders, coalesce(sum(paid), 0) AS paid, coalesce(sum(late), 0) AS late,
        coalesce(sum(overdue), 0) AS overdue, coalesce(sum(unpaid), 0) AS unpaid, coalesce(sum(disputes), 0) AS disputes,
        min(agreed_at) AS known_since
    FROM agreed WHERE status = 'Approved'
), charging AS (
    SELECT coalesce(sum(whole), 0) AS whole FROM agreed WHERE status = 'Created' AND charging
), declined AS (
    SELECT count(*) AS orders FROM (
        SELECT merchant_id, order_id FROM decisions
            WHERE consumer_id = $3 AND NOT approved AND decided_at >= $5::timestamptz AND NOT reasons <@ $7::text[]
        UNION SELECT merchant_id, order_id FROM agreed WHERE status = 'Declined' AND NOT decided AND agreed_at >= $5::timestamptz
    ) d
)
"""
_SEEN = """(SELECT count(*) FROM (SELECT 1 FROM signals WHERE kind = '{kind}' AND value_hash = ${hash} AND at >= ${since}
        AND (merchant_id, order_id) <> ($1, $2) LIMIT {most}) s){asked} AS {kind}"""
# Charges and card changes on the account page that did not pay count too, because that is how stolen cards are tested.
_ASKED = """ + (SELECT coalesce(sum((SELECT count(*) FROM unnest(a.asked) t WHERE t >= ${since})
        - (SELECT count(*) FROM unnest(a.paid) t WHERE t >= ${since})), 0)::bigint
        FROM consumer_asks a WHERE a.subject = '{kind}' AND a.value_hash = ${hash})"""
_KINDS = tuple(SignalKind)
_ASKED_WITH = (SignalKind.PHONE, SignalKind.CARD)
_VELOCITY = ",\n    ".join(
    _SEEN.format(
        kind=kind,
        hash=8 + 2 * index,
        since=9 + 2 * index,
        most=MOST_SEEN,
        asked=_ASKED.format(kind=kind, hash=8 + 2 * index, since=9 + 2 * index)
        if kind in _ASKED_WITH
        else "",
    )
    for index, kind in enumerate(_KINDS)
)
_READ = f"""{_PAST}
SELECT past.*, charging.whole AS charging, declined.orders AS declined,
    ARRAY(SELECT order_id FROM agreed WHERE order_id = ANY (${9 + 2 * len(_KINDS)}::uuid[])
        AND (status = 'Approved' OR (status = 'Created' AND charging))) AS counted,
    {_VELOCITY},
    (SELECT payer ->> 'surname' FROM agreed WHERE status = 'Approved' ORDER BY agreed_at DESC LIMIT 1) AS surname,
    (SELECT coalesce(sum(y.captures), 0)::bigint FROM settlement_days y WHERE y.merchant_id = $1
        AND y.day >= ($4::timestamptz AT TIME ZONE 'UTC')::date - {DISPUTE_DAYS}) AS merchant_captures,
    (SELECT coalesce(sum(y.disputes), 0)::bigint FROM settlement_days y WHERE y.merchant_id = $1
        AND y.day >= ($4::timestamptz AT TIME ZONE 'UTC')::date - {DISPUTE_DAYS}) AS merchant_disputes,
    (SELECT b.kind FROM consumer_blocks b WHERE b.consumer_id = $3 AND b.ended_at IS NULL
        AND (b.until IS NULL OR b.until > $4::timestamptz) LIMIT 1) AS block,
    m.approvals, m.approvals_model, f.document AS model, s.additional, v.consumer_id AS reviewed,
    EXISTS (SELECT 1 FROM checkout_sessions b JOIN order_details d USING (merchant_id, order_id) WHERE b.merchant_id = $1
        AND b.order_id = $2 AND b.session_hash = ${8 + 2 * len(_KINDS)} AND d.erased_at IS NULL) AS known
FROM merchants m CROSS JOIN past CROSS JOIN charging CROSS JOIN declined
    LEFT JOIN models f ON f.merchant_id = $1 AND f.version = m.approvals_model
    LEFT JOIN sdk_checkouts s ON s.merchant_id = $1 AND s.order_id = $2
    LEFT JOIN reviews v ON v.merchant_id = $1 AND v.order_id = $2
WHERE m.merchant_id = $1
"""
# Both statements take the same values, so this one returns the time, which it does not need.
_READ_PAST = f"""{_PAST} SELECT past.*, charging.whole AS charging, declined.orders AS declined, $4::timestamptz AS at
    FROM past CROSS JOIN charging CROSS JOIN declined"""
_LOCK = "SELECT 1 FROM consumer_exposure WHERE consumer_id = $1 FOR UPDATE"
# At a consumer's first order there is no row to lock, so the row is created.
_LOCK_FIRST = """INSERT INTO consumer_exposure AS e (consumer_id, version) VALUES ($1, 0)
    ON CONFLICT (consumer_id) DO UPDATE SET version = e.version"""
_CHANGED = "UPDATE consumer_exposure SET version = version + 1 WHERE consumer_id = $1"
_FORGET = """DELETE FROM signals s USING (
    SELECT merchant_id, order_id, kind, value_hash FROM signals WHERE at < $1 ORDER BY at LIMIT $2
) old WHERE s.merchant_id = old.merchant_id AND s.order_id = old.order_id AND s.kind = old.kind AND s.value_hash = old.value_hash
RETURNING 1"""


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """The question: the consumer, the order, the time, each signal's keyed hash, and the start of each signal's window.

    `session_hash` is the browser's checkout session. `reserved` are other orders that reserve a part of the consumer's limit.
    """

    merchant_id: UUID
    order_id: UUID
    consumer_id: UUID
    at: datetime
    since: Mapping[SignalKind, datetime]
    signals: Mapping[SignalKind, bytes] = field(default_factory=dict)
    session_hash: bytes | None = None
    reserved: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class RiskHistory:
    """The data of one read. `counted` are the orders of `reserved` whose amounts `history` already includes.

    `surname` is the last name in the consumer's latest plan. `approvals` is the merchant's mode of Advanced Approvals, `model`
    (JSON text) the model in force, `additional` (JSON text) the merchant's data that came with this order.
    `block` is why the operator has blocked the consumer, or empty.
    `known`: the browser's checkout session exists, and the order was not erased. `reviewed` is the consumer for whom the order
    was referred to a person; None if it was not.
    """

    history: History
    velocity: Velocity
    counted: frozenset[UUID]
    surname: str | None
    approvals: str
    model: str | None
    additional: str | None
    known: bool
    merchant_disputes: MerchantDisputes
    block: BlockFact = ""
    reviewed: UUID | None = None


async def read(session: Session, asked: HistoryQuery) -> RiskHistory:
    """Read everything in one statement. The reservations must be read before this (db/risk/reservations)."""
    tried = [value for kind in _KINDS for value in (asked.signals.get(kind), asked.since[kind])]
    since = asked.at - DECLINED_DAYS
    ids = (asked.merchant_id, asked.order_id, asked.consumer_id)
    row = await session.fetchrow(
        _READ, *ids, asked.at, since, list(DISPUTED), list(SANDBOX_DECLINES), *tried, asked.session_hash, list(asked.reserved),
    )  # fmt: skip
    assert row is not None, "orders have a merchant"
    return RiskHistory(
        history=_history(row, asked.at),
        velocity=Velocity(**{kind.value: row[kind.value] for kind in _KINDS}),
        counted=frozenset(row["counted"]),
        surname=row["surname"],
        approvals=row["approvals"],
        model=row["model"],
        additional=row["additional"],
        known=row["known"],
        merchant_disputes=MerchantDisputes(row["merchant_captures"], row["merchant_disputes"]),
        block=row["block"] or "",
        reviewed=row["reviewed"],
    )


async def past(session: Session, consumer_id: UUID, at: datetime) -> History:
    """Read a consumer's history at all merchants, as a decision about a new order would see it. Reservations are not included."""
    since, nobody = at - DECLINED_DAYS, UUID(int=0)
    row = await session.fetchrow(
        _READ_PAST, nobody, nobody, consumer_id, at, since, list(DISPUTED), list(SANDBOX_DECLINES)
    )
    assert row is not None, "aggregates return one row"
    return _history(row, at)


def _history(row: Row, at: datetime) -> History:
    known = row["known_since"]
    return History(
        approved_orders=row["approved_orders"],
        paid_installments=int(row["paid"]),
        late_installments=int(row["late"]),
        overdue_installments=int(row["overdue"]),
        outstanding=int(row["unpaid"] + row["charging"]),
        declined_orders=row["declined"],
        days_known=None if known is None else max(0, (at - known).days),
        disputes=int(row["disputes"]),
    )


async def lock(session: Session, consumer_id: UUID) -> None:
    """Lock the consumer's exposure until this transaction ends, so that nothing is reserved meanwhile."""
    if await session.fetchrow(_LOCK, consumer_id) is None:
        await session.fetchrow(_LOCK_FIRST, consumer_id)


async def changed(session: Session, consumer_id: UUID) -> None:
    """Change the version of the consumer's exposure, so that the previous release does not save earlier decisions."""
    await session.fetchrow(_CHANGED, consumer_id)


async def forget(session: Session, before: datetime) -> int:
    """Delete signals that are older than the window of any policy, at most AT_ONCE. Return how many were deleted."""
    return len(await session.fetch(_FORGET, before, AT_ONCE))
