"""`cuota verify`: recalculates every order's amounts, plan and balances from the ledger, and names each row that differs.

One statement reads the facts of a batch of orders; the comparison is a plain function of these facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuota.db.migrate import OnProgress, untold
from cuota.db.nested import Nested
from cuota.db.order.columns import PLAN
from cuota.db.payout.terms import TERMS
from cuota.db.plan.plan_changes import CHANGES
from cuota.db.pool import Pool
from cuota.db.risk.decisions import INTACT
from cuota.db.sandbox import clock
from cuota.db.session import Session
from cuota.db.verify import publishing, reservations, settlements, waivers
from cuota.db.verify.review_rules import REVIEWED
from cuota.db.verify.rules import disagreements_of

BATCH = 500
# All merchants, and every merchant id in the ledger. The statement jumps along the ledger's key and does not read all of
# it.
_MERCHANTS = """
WITH RECURSIVE held AS (
    (SELECT merchant_id FROM transfers ORDER BY merchant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT t.merchant_id FROM transfers t WHERE t.merchant_id > held.merchant_id
        ORDER BY t.merchant_id LIMIT 1) FROM held WHERE held.merchant_id IS NOT NULL
)
SELECT merchant_id FROM held WHERE merchant_id IS NOT NULL UNION SELECT merchant_id FROM merchants
"""
# The same query for a Citus cluster, which cannot jump over all shards. Each shard reads its part of the ledger's
# index.
_MERCHANTS_OF_SHARDS = "SELECT DISTINCT merchant_id FROM transfers UNION SELECT merchant_id FROM merchants"
# The keys are the names of the facts in verify/rules.py.
_ROWS = {
    "ledger": Nested(
        "ledger",
        ("t.number", "t.posting", "t.cause", "t.debit", "t.credit", "t.amount", "t.currency"),
        "FROM transfers t WHERE t.merchant_id = $1 AND t.order_id = o.order_id ORDER BY t.number",
    ),
    "moved": Nested(
        "moved",
        ("m.kind", "m.reference", "m.movement_id", "m.amount"),
        "FROM movements m WHERE m.merchant_id = $1 AND m.order_id = o.order_id",
    ),
    "plan": PLAN,
    "charged": Nested(
        "charged",
        ("c.charge_id", "c.installment", "c.amount", "c.state"),
        "FROM charges c WHERE c.merchant_id = $1 AND c.order_id = o.order_id",
    ),
    "returning": Nested(
        "returned_to",
        ("r.card_refund_id", "r.charge_id", "r.amount", "r.state"),
        "FROM card_refunds r WHERE r.merchant_id = $1 AND r.order_id = o.order_id",
    ),
    "disputes": Nested(
        "disputes",
        (
            "d.dispute_id",
            "d.kind",
            "d.status",
            "d.amount",
            "d.withheld",
            "d.outcome",
            "d.movement_id",
            "d.release_id",
            "d.charge_id",
            "d.respond_by",
            "d.reminded",
            "d.appeal_by",
            "d.due_at",
        ),
        "FROM disputes d WHERE d.merchant_id = $1 AND d.order_id = o.order_id ORDER BY d.opened_at, d.dispute_id",
    ),
    "held_returns": Nested(
        "held_returns",
        ("w.installment", "w.due_on"),
        "FROM return_notices w WHERE w.merchant_id = $1 AND w.order_id = o.order_id",
    ),
    "changes": CHANGES,
    "terms": TERMS,
    "moved_at": Nested(
        "moved_at",
        ("m.movement_id", "m.created_at"),
        "FROM movements m WHERE m.merchant_id = $1 AND m.order_id = o.order_id",
    ),
    "told": Nested(
        "told",
        ("e.type", "e.reference", "e.amount", "e.success"),
        "FROM events e WHERE e.merchant_id = $1 AND e.order_id = o.order_id ORDER BY e.sequence",
    ),
    "decided": Nested(
        "decided",
        ("d.approved", "d.inputs ->> 'amount'", INTACT, "d.inputs ->> 'review'", "d.consumer_id"),
        "FROM decisions d WHERE d.merchant_id = $1 AND d.order_id = o.order_id ORDER BY d.decided_at",
    ),
    "reviewed": REVIEWED,
}
_ORDERS = f"""
SELECT o.*,
    {", ".join(nested.columns for nested in _ROWS.values())},
    ARRAY(SELECT e.sequence FROM events e WHERE e.merchant_id = $1 AND e.order_id = o.order_id ORDER BY e.sequence)
        AS sequences,
    ARRAY(SELECT r.card_refund_id FROM card_refunds r
        WHERE r.merchant_id = $1 AND r.order_id = o.order_id AND r.state = 'pending' AND r.try_at IS NULL) AS refunds_not_due,
    (SELECT e.amount FROM events e WHERE e.merchant_id = $1 AND e.order_id = o.order_id AND e.sequence = 1)
        AS created_amount,
    d.document ->> 'merchantFeeForPaymentPlan' AS created_fee, d.order_id IS NOT NULL AS has_details,
    CASE WHEN d.erased_at IS NOT NULL THEN d.document::text END AS erased_document,
    p.order_id IS NOT NULL AS agreed, p.agreement, p.agreement_hash, p.erased_at IS NOT NULL AS erased,
    p.payer IS NOT NULL AS has_payer, p.first_day, p.time_zone, p.consumer_id
FROM orders o LEFT JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id
    {" ".join(nested.join for nested in _ROWS.values())}
WHERE o.merchant_id = $1 AND o.order_id > $2 ORDER BY o.order_id LIMIT $3
"""
# Rows of an order that does not exist: anti-joins along primary keys. Events may also belong to a payout or a bank account.
_OF_ORDERS = {
    "transfers": "t.number",
    "movements": "t.reference",
    "plans": "t.first_day",
    "installments": "t.number",
    "charges": "t.charge_id",
    "card_refunds": "t.card_refund_id",
    "disputes": "t.dispute_id",
    "decisions": "t.decision_id",
}
_STRAY = (
    " UNION ALL ".join(
        f"""SELECT t.order_id, '{table}' AS place, {named}::text AS named FROM {table} t WHERE t.merchant_id = $1
    AND NOT EXISTS (SELECT FROM orders o WHERE o.merchant_id = $1 AND o.order_id = t.order_id)"""
        for table, named in _OF_ORDERS.items()
    )
    + """ UNION ALL SELECT t.order_id, 'events' AS place, t.sequence::text AS named FROM events t WHERE t.merchant_id = $1
    AND NOT EXISTS (SELECT FROM orders o WHERE o.merchant_id = $1 AND o.order_id = t.order_id)
    AND NOT EXISTS (SELECT FROM payouts p WHERE p.merchant_id = $1 AND p.payout_id = t.order_id)
    AND NOT EXISTS (SELECT FROM bank_accounts b WHERE b.merchant_id = $1 AND b.account_id = t.order_id) LIMIT 1000"""
)
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One row that disagrees with the ledger or with related rows; `problem` gives both numbers.

    For a row that belongs to no order, `order_id` is the id of the payout, reserve or adjustment, or of the merchant.
    """

    merchant_id: UUID
    order_id: UUID
    row: str
    problem: str


@dataclass(slots=True)
class VerifyReport:
    """The number of checked orders, and the rows that disagree."""

    orders: int = 0
    transfers: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)


async def verify(pool: Pool, told: OnProgress = untold) -> VerifyReport:
    """Check all orders, settlements, payouts and reservations. `told` gets the number of orders checked so far, and of all orders."""
    report = VerifyReport()
    async with pool.session() as session:
        # This statement has no timeout: nothing waits for it, and a large merchant takes longer than a request may.
        await session.execute("SET statement_timeout = 0")
        try:
            total = await session.fetchval("SELECT count(*) FROM orders")
            for merchant in await session.fetch(_MERCHANTS_OF_SHARDS if pool.sharded else _MERCHANTS):
                await _verify_merchant(
                    session, merchant["merchant_id"], report, lambda: told(report.orders, total, "")
                )
            async for found in reservations.disagreements(session):
                report.disagreements.append(Disagreement(*found))
            async for found in settlements.disagreements(session):
                report.disagreements.append(Disagreement(*found))
        finally:
            await session.execute("RESET statement_timeout")
    return report


async def _verify_merchant(
    session: Session, merchant_id: UUID, report: VerifyReport, told: Callable[[], None]
) -> None:
    after = _FIRST
    while rows := await session.fetch(_ORDERS, merchant_id, after, BATCH):
        read_at = (await clock.read(session)).now
        for row in rows:
            nested_rows = {name: list(nested.of(row)) for name, nested in _ROWS.items()}
            facts: dict[str, Any] = {**row, **nested_rows, "read_at": read_at}
            report.orders += 1
            report.transfers += len(facts["ledger"])
            for place, problem in disagreements_of(facts):
                report.disagreements.append(Disagreement(merchant_id, facts["order_id"], place, problem))
            async for place, problem in waivers.disagreements(session, facts):
                report.disagreements.append(Disagreement(merchant_id, facts["order_id"], place, problem))
        after = rows[-1]["order_id"]
        told()
    async for found in publishing.disagreements(session, merchant_id):
        report.disagreements.append(Disagreement(merchant_id, *found))
    for row in await session.fetch(_STRAY, merchant_id):
        place = f"{row['place']} {row['named']}"
        report.disagreements.append(Disagreement(merchant_id, row["order_id"], place, "belongs to no order"))
