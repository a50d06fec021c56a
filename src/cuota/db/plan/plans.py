"""Reads an order with its plan, for decisions about collecting the plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.installment import Installment
from cuota.core.order.order import Order
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import NEVER_SENT
from cuota.core.plan.declines import FINAL_FOR_CARD, MOST_ATTEMPTS
from cuota.db.order.by_id import ReadById
from cuota.db.order.columns import MONEY, PLAN, order_of, plan_of
from cuota.db.order.orders import Found
from cuota.db.pool import Row
from cuota.db.session import Session

# The last card that the consumer entered, or else the last card that paid.
CARD = """coalesce(p.card_token, k.card_token) AS card_token, coalesce(p.card_brand, k.card_brand) AS card_brand,
    coalesce(p.card_last4, k.card_last4) AS card_last4, p.card_hash"""
CARD_JOIN = """LEFT JOIN LATERAL (SELECT c.card_token, c.card_brand, c.card_last4 FROM charges c WHERE p.card_token IS NULL
    AND c.merchant_id = $1 AND c.order_id = p.order_id AND c.state = 'succeeded' ORDER BY c.created_at DESC LIMIT 1) k ON true"""
# Whether the charge `c` was made to the card that pays now. A card that was entered again has another token, but the same hash.
SAME_CARD = "(c.card_token = coalesce(p.card_token, k.card_token) OR c.card_hash = p.card_hash)"
# A bank's reasons for "never charge this card again".
_FINAL = ", ".join(f"'{reason}'" for reason in sorted(FINAL_FOR_CARD))
# Whether the card must never be charged again for this plan: its bank said so, or won a chargeback of one of its payments.
ENDED = f"""EXISTS (SELECT FROM charges c WHERE c.merchant_id = $1 AND c.order_id = p.order_id
        AND {SAME_CARD} AND (c.reason IN ({_FINAL}) OR EXISTS (SELECT FROM disputes d
            WHERE d.merchant_id = $1 AND d.order_id = p.order_id AND d.charge_id = c.charge_id AND d.kind = 'chargeback'
                AND d.outcome = 'lost')))"""
_PLANS = f"""{MONEY}, {PLAN.columns}, p.consumer_id AS payer_id, p.time_zone, {CARD}, (SELECT max(m.created_at) FROM messages m
    WHERE m.merchant_id = $1 AND m.order_id = o.order_id AND m.kind = 'card_changed') AS card_told,
    ARRAY(SELECT c.created_at FROM charges c WHERE c.merchant_id = $1 AND c.order_id = o.order_id AND c.state = 'failed'
        AND c.reason IS DISTINCT FROM '{NEVER_SENT}' AND c.card_token = coalesce(p.card_token, k.card_token)
        ORDER BY c.created_at DESC LIMIT {MOST_ATTEMPTS}) AS declined_at,
    {ENDED} AS ended
FROM orders o JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id {CARD_JOIN} {PLAN.join}
WHERE o.merchant_id = $1 AND o.status = 'Approved'"""
_AGREED = f"SELECT {_PLANS} AND o.order_id = $2"
_ALL_AGREED = f"SELECT {_PLANS} AND o.order_id = ANY ($2::uuid[]) AND p.order_id = ANY ($2::uuid[])"


@dataclass(frozen=True, slots=True)
class Agreed:
    """An approved order with its plan, the consumer's time zone, and the card that pays.

    `payer_id` is the consumer who pays; after that consumer was erased, an id that belongs to nobody.
    `card_told` is the time of the consumer's last message about a changed card. `declined_at` are the latest times at
    which the card declined a payment: of this plan, or of any plan of the card (`flows/plan/collect_installments.py`).
    `ended`: the card must never be charged again for this plan, because its bank said so, or won a chargeback of one of its
    payments. `refused`: the same for any plan of the card.
    """

    found: Found
    payer_id: UUID
    zone: ZoneInfo
    card: PlanCard
    card_told: datetime | None = None
    declined_at: tuple[datetime, ...] = ()
    ended: bool = False
    refused: bool = False

    @property
    def order(self) -> Order:
        """The order as it was read."""
        return self.found.order

    @property
    def plan(self) -> tuple[Installment, ...]:
        """The plan's installments."""
        return self.found.plan


def card_of(row: Row) -> PlanCard:
    """Return the card from a row with the columns of CARD."""
    return PlanCard(row["card_token"], row["card_brand"], row["card_last4"], row["card_hash"])


async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Agreed | None:
    """Read the order and plan in one round trip. Return None if the consumer has not agreed to a plan."""
    return await _READ(session, merchant_id, order_id)


def _agreed_of(row: Row) -> Agreed:
    found = Found(order_of(row), None, plan_of(row))
    return Agreed(
        found,
        row["payer_id"],
        ZoneInfo(row["time_zone"]),
        card_of(row),
        row["card_told"],
        tuple(row["declined_at"]),
        row["ended"],
    )


_READ = ReadById(_AGREED, _ALL_AGREED, _agreed_of)
