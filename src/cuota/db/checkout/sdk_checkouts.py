"""Reads checkouts that a signed request started: the signing merchant, and the order that the same text created before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.checkout.start import Display, Flow, Integration, Start
from cuota.core.merchant import Merchant
from cuota.core.order.event import event_type
from cuota.core.order.order import Order
from cuota.db.merchant.merchants import COLUMNS, merchant_of
from cuota.db.order.columns import MONEY, order_of
from cuota.db.pool import Row
from cuota.db.session import Session

# A merchant whose credentials are all revoked can no longer sign requests.
_SIGNER = f"""SELECT {COLUMNS}, m.signing_secret, m.old_signing_secret,
    m.old_signing_secret_ends_at FROM merchants m WHERE m.merchant_id = $1
    AND EXISTS (SELECT FROM credentials c WHERE c.merchant_id = m.merchant_id AND c.revoked_at IS NULL)"""
# An order times out only at `expires_at`. So an order that was Abandoned before that was canceled by its consumer.
LEFT = f"""CASE WHEN o.status = 'Abandoned' THEN (SELECT bool_or(e.created_at < o.expires_at) FROM events e
    WHERE e.merchant_id = $1 AND e.order_id = o.order_id AND e.type = '{event_type("order.abandoned")}') ELSE false END AS was_left"""
STARTED = "s.origin AS started_from, s.display AS shown_in, s.flow, s.integration"
# A rejected order stays rejected, even if the merchant's range has changed. It is not an order that risk declined.
_REJECTED = f"""coalesce((SELECT true FROM events e WHERE o.status = 'Declined' AND e.merchant_id = $1
    AND e.order_id = o.order_id AND e.type = '{event_type("order.rejected")}' LIMIT 1), false) AS rejected"""
_EARLIER = f"""SELECT {MONEY}, o.token, p.payer, {STARTED}, {_REJECTED}, {LEFT}
    FROM sdk_checkouts s JOIN orders o ON o.merchant_id = $1 AND o.order_id = s.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = s.order_id
    WHERE s.merchant_id = $1 AND s.body_hash = $2"""

_SHOP = f"""SELECT {MONEY}, o.token, {LEFT} FROM orders o
    JOIN sdk_checkouts s ON s.merchant_id = $1 AND s.order_id = o.order_id WHERE o.merchant_id = $1 AND o.order_id = $2 AND s.integration = 'smi'"""
_MOVE = "UPDATE sdk_checkouts SET origin = $3 WHERE merchant_id = $1 AND order_id = $2"
_PAYER = "SELECT payer FROM plans WHERE merchant_id = $1 AND order_id = $2 AND consumer_id = $3"


@dataclass(frozen=True, slots=True)
class Earlier:
    """The order that a signed text created. `payer` is the stored JSON of the consumer who agreed to pay, or None.

    `rejected` means that the amount was outside the merchant's range. `left` means that the consumer canceled the checkout
    before it timed out.
    """

    order: Order
    token: UUID
    payer: str | None
    start: Start
    rejected: bool
    left: bool


@dataclass(frozen=True, slots=True)
class ShopCheckout:
    """A checkout that a shop system started. `left` means that the consumer canceled it before it timed out."""

    order: Order
    token: UUID
    left: bool


def start_of(row: Row) -> Start | None:
    """Return how a checkout was started, from a row with the columns of STARTED; None for an order of `POST /order`."""
    if row["integration"] is None:
        return None
    display, flow = Display(row["shown_in"]), Flow(row["flow"])
    return Start(Integration(row["integration"]), display, flow, origin=row["started_from"])


@dataclass(frozen=True, slots=True)
class Signer:
    """A merchant and its encrypted signing secret. `old_secret` is also valid until `old_ends_at`."""

    merchant: Merchant
    secret: bytes
    old_secret: bytes | None
    old_ends_at: datetime | None


async def read_signer(session: Session, merchant_id: UUID) -> Signer | None:
    """Return the merchant and its secrets, or None for an unknown or revoked merchant."""
    row = await session.fetchrow(_SIGNER, merchant_id)
    if row is None:
        return None
    old, ends_at = row["old_signing_secret"], row["old_signing_secret_ends_at"]
    return Signer(merchant_of(row), row["signing_secret"], old, ends_at)


async def move(session: Session, merchant_id: UUID, order_id: UUID, origin: str) -> None:
    """Store another origin for the merchant's page, which gets the result from now on."""
    await session.fetchrow(_MOVE, merchant_id, order_id, origin)


async def read_payer(session: Session, merchant_id: UUID, order_id: UUID, consumer_id: UUID) -> str | None:
    """Return the stored JSON of the consumer who agreed to pay, or None if that is not this consumer."""
    row = await session.fetchrow(_PAYER, merchant_id, order_id, consumer_id)
    return None if row is None else row["payer"]


async def read_earlier(session: Session, merchant_id: UUID, body_hash: bytes) -> Earlier | None:
    """Return the order that this signed text created, or None."""
    row = await session.fetchrow(_EARLIER, merchant_id, body_hash)
    if row is None:
        return None
    start = start_of(row)
    assert start is not None
    return Earlier(order_of(row), row["token"], row["payer"], start, row["rejected"], row["was_left"])


async def read_shop_checkout(session: Session, merchant_id: UUID, order_id: UUID) -> ShopCheckout | None:
    """Return a shop system's checkout. None for an unknown order, or an order that was started in another way."""
    row = await session.fetchrow(_SHOP, merchant_id, order_id)
    return None if row is None else ShopCheckout(order_of(row), row["token"], row["was_left"])
