"""The account page's sessions, and a consumer's plans at all merchants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.order.order import Order
from cuota.core.plan.card import PlanCard
from cuota.core.plan.change import PlanChange
from cuota.core.plan.collection import needs_card
from cuota.db.merchant.merchants import SHOWN_NAME
from cuota.db.nested import Nested
from cuota.db.old_rows import deleting
from cuota.db.order.columns import MONEY, PLAN, order_of, plan_of
from cuota.db.plan.charged_back import BY_BANK, returned_by_bank
from cuota.db.plan.plan_changes import CHANGES, changes_of
from cuota.db.plan.plans import CARD, CARD_JOIN, ENDED, card_of
from cuota.db.session import Session

_OPEN = """INSERT INTO account_sessions AS s (session_hash, created_at, ends_at) VALUES ($1, $2, $3)
    ON CONFLICT (session_hash) DO UPDATE SET created_at = $2, ends_at = $3, phone = NULL, code_hash = NULL,
        code_ends_at = NULL, code_tries = 0, codes_sent = 0, consumer_id = NULL WHERE s.ends_at < $4"""
_READ = """SELECT session_hash, phone, consumer_id, codes_sent FROM account_sessions
    WHERE session_hash = $1 AND ends_at > $2"""
_CODE_SENT = """UPDATE account_sessions SET phone = $2, code_hash = $3, code_ends_at = $4, code_tries = 0,
    codes_sent = codes_sent + 1, consumer_id = NULL WHERE session_hash = $1 AND codes_sent < $5 RETURNING 1"""
_TRY = """UPDATE account_sessions SET code_tries = least(code_tries + 1, 1000)
    WHERE session_hash = $1 AND code_hash IS NOT NULL RETURNING code_tries, code_hash, code_ends_at"""
_VERIFIED = """UPDATE account_sessions SET consumer_id = $2, code_hash = NULL, session_hash = $4, ends_at = $5
    WHERE session_hash = $1 AND code_hash = $3 RETURNING 1"""
_END = "DELETE FROM account_sessions WHERE session_hash = $1"
_FORGET = deleting("account_sessions", "session_hash", "ends_at < $1")

_COLUMNS = f"""{MONEY}, {PLAN.columns}, {CARD}, {ENDED} AS card_ended, p.agreed_at, p.time_zone, {SHOWN_NAME} AS merchant,
    m.support_email, m.support_url, d.reference"""
_SHOWN = f"""{_COLUMNS}
FROM plans p JOIN orders o ON o.merchant_id = $1 AND o.order_id = p.order_id JOIN merchants m ON m.merchant_id = $1
    JOIN order_details d ON d.merchant_id = $1 AND d.order_id = p.order_id {CARD_JOIN} {PLAN.join}"""
# The place of each plan in the list, without the rows of its page: a consumer may have thousands of plans. Overdue plans come first,
# then plans with something left to pay, because consumers come to the page for these. A LIMIT or an aggregate inside a LATERAL part
# makes the planner look up one order at a time. Otherwise it may read all orders of the merchant for each plan.
_PAGE = """SELECT p.order_id FROM plans p CROSS JOIN LATERAL (
        SELECT status FROM orders WHERE merchant_id = p.merchant_id AND order_id = p.order_id LIMIT 1
    ) o CROSS JOIN LATERAL (
        SELECT CASE WHEN bool_or(failures > 0) THEN 1 WHEN count(*) > 0 THEN 2 ELSE 3 END AS place FROM installments
        WHERE merchant_id = p.merchant_id AND order_id = p.order_id AND charge_id IS NULL AND amount + fee > 0
    ) i WHERE p.consumer_id = $1 AND o.status = 'Approved' ORDER BY i.place, p.agreed_at DESC, p.order_id LIMIT $2 OFFSET $3"""
_LATE = """SELECT coalesce(sum(i.late), 0)::bigint AS late FROM plans p CROSS JOIN LATERAL (
        SELECT status FROM orders WHERE merchant_id = p.merchant_id AND order_id = p.order_id LIMIT 1
    ) o CROSS JOIN LATERAL (
        SELECT sum(amount + fee) AS late FROM installments WHERE merchant_id = p.merchant_id AND order_id = p.order_id
            AND charge_id IS NULL AND (failures > 0 OR written_off_at IS NOT NULL)
    ) i WHERE p.consumer_id = $1 AND o.status = 'Approved'"""
# The same columns for plans at all merchants: each part uses the merchant of its plan.
_PLANS = f"""SELECT {_COLUMNS} FROM plans p
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE merchant_id = $1 AND order_id = p.order_id LIMIT 1) o
    CROSS JOIN LATERAL (SELECT reference FROM order_details WHERE merchant_id = $1 AND order_id = p.order_id LIMIT 1) d
    JOIN merchants m ON m.merchant_id = $1 {CARD_JOIN} {PLAN.join}
    WHERE p.consumer_id = $1 AND p.order_id = ANY ($2::uuid[])""".replace(
    "merchant_id = $1", "merchant_id = p.merchant_id"
)
_RECEIPTS = Nested(
    "receipts",
    ("c.charge_id", "c.installment", "c.amount", "c.card_brand", "c.card_last4", "c.settled_at"),
    """FROM charges c WHERE c.merchant_id = $1 AND c.order_id = o.order_id AND c.state = 'succeeded'
        ORDER BY c.settled_at""",
)
_RETURNS = Nested(
    "returns",
    ("r.card_refund_id", "r.amount", "r.state", "r.created_at", "c.card_brand", "c.card_last4"),
    """FROM card_refunds r JOIN charges c ON c.merchant_id = $1 AND c.order_id = r.order_id AND c.charge_id = r.charge_id
        WHERE r.merchant_id = $1 AND r.order_id = o.order_id ORDER BY r.created_at""",
)
# A lost chargeback refunds the captured part and voids the rest. No merchant knows the id of a movement in advance, and a lost dispute
# of the consumer voids nothing.
_CHARGED_BACK = """m.reference = 'dispute-' || m.movement_id AND (m.kind = 'void' OR EXISTS (SELECT FROM disputes e
    WHERE e.merchant_id = $1 AND e.order_id = o.order_id AND e.movement_id = m.movement_id AND e.kind = 'chargeback'))"""
_LESSENED = Nested(
    "lessened",
    (
        "m.kind",
        "m.amount",
        "m.created_at",
        "m.reference = 'authorization-expiry-' || m.movement_id",
        _CHARGED_BACK,
    ),
    """FROM movements m WHERE m.merchant_id = $1 AND m.order_id = o.order_id
        AND m.kind IN ('void', 'refund') ORDER BY m.created_at, m.movement_id""",
)
_PLAN = f"""
SELECT p.agreement, p.agreement_hash,
    {_RECEIPTS.columns}, {_RETURNS.columns}, {BY_BANK.columns}, {_LESSENED.columns}, {CHANGES.columns},
    {_SHOWN} {_RECEIPTS.join} {_RETURNS.join} {BY_BANK.join} {_LESSENED.join} {CHANGES.join}
WHERE p.merchant_id = $1 AND p.order_id = $2 AND p.consumer_id = $3 AND o.status = 'Approved'
"""


@dataclass(frozen=True, slots=True)
class AccountSession:
    """The session of one browser. `consumer_id` is set after the browser has proved its phone number."""

    session_hash: bytes
    phone: str | None
    consumer_id: UUID | None
    codes_sent: int = 0


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """One plan as shown to its consumer. `card_ended`: its card must never be charged again."""

    order: Order
    plan: tuple[Installment, ...]
    card: PlanCard
    agreed_at: datetime
    zone: str
    merchant: str
    reference: str
    support_email: str | None
    support_url: str | None
    card_ended: bool = False

    @property
    def needs_card(self) -> bool:
        """Whether the plan needs another card, because its card had a hard decline or a chargeback."""
        return self.card_ended or needs_card(self.plan)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A payment by a card, in cents."""

    charge_id: UUID
    installment: int
    amount: int
    card_brand: str
    card_last4: str
    paid_at: datetime


@dataclass(frozen=True, slots=True)
class Return:
    """A refund to a card, completed or in progress, in cents. `to_card` is its amount without the part that lost chargebacks returned."""

    amount: int
    to_card: int
    state: str
    asked_at: datetime
    card_brand: str
    card_last4: str


@dataclass(frozen=True, slots=True)
class Less:
    """A void or refund that reduced the order, in cents.

    `expired`: the authorization's end caused the void. `charged_back`: a lost chargeback caused the void or refund.
    """

    kind: str
    amount: int
    at: datetime
    expired: bool
    charged_back: bool


@dataclass(frozen=True, slots=True)
class PlanDetail:
    """A plan with the accepted agreement and its agreed changes, its payments, its refunds, and the reasons for them.

    `agreement` is as it is stored (core/plan/agreement.py).
    """

    shown: ShownPlan
    agreement: str
    agreement_hash: str
    receipts: tuple[Receipt, ...]
    returns: tuple[Return, ...]
    lessened: tuple[Less, ...] = ()
    changes: tuple[PlanChange, ...] = ()


async def open_session(
    session: Session, session_hash: bytes, now: datetime, ends_at: datetime, code_ends_at: datetime
) -> None:
    """Create a browser's session. Keep an open session, unless a code sent now would be valid longer than the session."""
    await session.fetchrow(_OPEN, session_hash, now, ends_at, code_ends_at)


async def read_session(session: Session, session_hash: bytes, now: datetime) -> AccountSession | None:
    """Return the session, or None if the secret is forged or the session has ended."""
    row = await session.fetchrow(_READ, session_hash, now)
    return None if row is None else AccountSession(*row)


async def code_sent(
    session: Session, session_hash: bytes, phone: str, code_hash: bytes, ends_at: datetime, most: int
) -> bool:
    """Store the code sent to this number, and forget the number verified before.

    Return False if `most` codes were already sent.
    """
    return await session.fetchrow(_CODE_SENT, session_hash, phone, code_hash, ends_at, most) is not None


async def try_code(session: Session, session_hash: bytes) -> tuple[int, bytes, datetime] | None:
    """Count an attempt before it is checked.

    Return (attempts so far, the code's hash, its expiration), or None without a code.
    """
    row = await session.fetchrow(_TRY, session_hash)
    return None if row is None else (row["code_tries"], row["code_hash"], row["code_ends_at"])


async def verified(
    session: Session,
    session_hash: bytes,
    consumer_id: UUID,
    code_hash: bytes,
    new_hash: bytes,
    ends_at: datetime,
) -> bool:
    """Mark the right code as used, and give the session a new secret. Return False if the code was used before."""
    row = await session.fetchrow(_VERIFIED, session_hash, consumer_id, code_hash, new_hash, ends_at)
    return row is not None


async def end(session: Session, session_hash: bytes) -> None:
    """End the session, because the consumer signed out."""
    await session.fetchrow(_END, session_hash)


async def forget(session: Session, now: datetime) -> None:
    """Delete sessions that have ended."""
    await session.fetchrow(_FORGET, now)


async def plans_of(session: Session, consumer_id: UUID, limit: int, skip: int) -> list[ShownPlan]:
    """Return a consumer's plans: overdue plans, then plans with something left to pay, then the rest; newest first in each."""
    order_ids = [row["order_id"] for row in await session.fetch(_PAGE, consumer_id, limit, skip)]
    if not order_ids:
        return []
    found = {row["order_id"]: _shown(row) for row in await session.fetch(_PLANS, consumer_id, order_ids)}
    # A plan may have been erased in between.
    return [found[each] for each in order_ids if each in found]


async def late_of(session: Session, consumer_id: UUID) -> int:
    """Return the unpaid amount of a consumer's overdue and written-off payments in all plans, in cents."""
    row = await session.fetchrow(_LATE, consumer_id)
    return 0 if row is None else int(row["late"])


async def plan_of_consumer(
    session: Session, consumer_id: UUID, merchant_id: UUID, order_id: UUID
) -> PlanDetail | None:
    """Return one plan, if it belongs to this consumer."""
    row = await session.fetchrow(_PLAN, merchant_id, order_id, consumer_id)
    if row is None:
        return None
    receipts = tuple(Receipt(*item) for item in _RECEIPTS.of(row))
    by_bank = returned_by_bank(row)
    returns = tuple(
        Return(amount, amount - by_bank[card_refund_id], *rest)
        for card_refund_id, amount, *rest in _RETURNS.of(row)
    )
    lessened = tuple(Less(*item) for item in _LESSENED.of(row))
    return PlanDetail(
        _shown(row), row["agreement"], row["agreement_hash"], receipts, returns, lessened, changes_of(row)
    )


def _shown(row: Any) -> ShownPlan:
    return ShownPlan(
        order_of(row), plan_of(row), card_of(row), row["agreed_at"], row["time_zone"],
        row["merchant"], row["reference"], row["support_email"], row["support_url"], row["card_ended"],
    )  # fmt: skip
