"""What lost chargebacks have returned of card refunds, and what they have cost Cuota.

An order may have thousands of card refunds. The index transfers_chargebacks contains only the transfers of these two postings, so that a
statement about one card refund does not read all others of the order. A statement about all card refunds of an order uses BY_BANK.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from cuota.db.nested import Nested
from cuota.db.pool import Row

BY_BANK = Nested(
    "by_bank",
    ("b.cause", "b.amount"),
    """FROM transfers b WHERE b.merchant_id = $1 AND b.order_id = o.order_id AND b.posting = 'refund_charged_back'""",
)


def returned_by_bank(row: Row) -> Counter[UUID]:
    """Return the cents that lost chargebacks returned of each card refund, from a row with the columns of BY_BANK."""
    returned = Counter[UUID]()
    for card_refund_id, amount in BY_BANK.of(row):
        returned[card_refund_id] += amount
    return returned


def left(merchant: str) -> str:
    """Return SQL for what is left of the card refund `r` of this merchant: its amount without the part that lost chargebacks returned."""
    return f"""(r.amount - (SELECT coalesce(sum(b.amount), 0) FROM transfers b WHERE b.merchant_id = {merchant}
    AND b.order_id = r.order_id AND b.cause = r.card_refund_id AND b.posting = 'refund_charged_back'))::bigint"""


def borne(charge: str) -> str:
    """Return SQL for the cents that Cuota lost in chargebacks of a charge, without the refunds that these chargebacks returned.

    Each part begins with the few transfers of its posting. LIMIT makes the plan look up their causes one by one.
    """
    return f"""((SELECT coalesce(sum(t.amount), 0) FROM transfers t CROSS JOIN LATERAL (SELECT FROM disputes d
            WHERE d.merchant_id = $1 AND d.order_id = $2 AND d.movement_id = t.cause AND d.charge_id = {charge}
                AND d.outcome = 'lost' LIMIT 1) d
        WHERE t.merchant_id = $1 AND t.order_id = $2 AND t.posting = 'chargeback_loss')
    - (SELECT coalesce(sum(t.amount), 0) FROM transfers t CROSS JOIN LATERAL (SELECT FROM card_refunds b
            WHERE b.merchant_id = $1 AND b.order_id = $2 AND b.card_refund_id = t.cause AND b.charge_id = {charge} LIMIT 1) b
        WHERE t.merchant_id = $1 AND t.order_id = $2 AND t.posting = 'refund_charged_back'))::bigint"""
