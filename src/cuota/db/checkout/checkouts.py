"""Stores checkout sessions. A session is one browser in one checkout, with the data entered so far."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.checkout.start import Display, Start
from cuota.core.consumer import Address, Profile, ShippingAddress
from cuota.core.installment import Installment
from cuota.core.merchant import BodyProfile, Merchant, Onboarding
from cuota.core.order.order import Order
from cuota.db.checkout.sdk_checkouts import LEFT, STARTED, start_of
from cuota.db.cluster.across import sweep
from cuota.db.merchant.merchants import OWN, own_of
from cuota.db.old_rows import deleting_some
from cuota.db.order.columns import MONEY, PLAN, order_of, plan_of
from cuota.db.session import Session

_KEY = "merchant_id = $1 AND order_id = $2 AND session_hash = $3"
_OPEN = """INSERT INTO checkout_sessions (merchant_id, order_id, session_hash, created_at, display,
    device_hash) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"""
_SHOWN = f"UPDATE checkout_sessions SET display = $4 WHERE {_KEY} AND display IS DISTINCT FROM $4"
_READ = f"""
SELECT {MONEY}, o.token, d.document, {PLAN.columns}, {STARTED}, {LEFT},
    b.session_hash, b.phone, b.code_hash, b.codes_sent, b.verified_at, b.consumer_id,
    b.profile AS details, b.created_at AS opened_at, b.display, b.shipping, b.device_hash,
    m.name AS merchant, m.minimum, m.maximum, m.defer_funds_capture, m.profile AS body_profile,
    m.currency AS merchant_currency, m.origins, m.onboarding, m.suspended_at IS NOT NULL AS suspended,
    v.consumer_id AS reviewed, a.consumer_id AS payer_id, a.browser AS paid_in, {OWN}
FROM checkout_sessions b JOIN orders o ON o.merchant_id = $1 AND o.order_id = b.order_id
    JOIN order_details d ON d.merchant_id = $1 AND d.order_id = b.order_id JOIN merchants m ON m.merchant_id = $1
    LEFT JOIN sdk_checkouts s ON s.merchant_id = $1 AND s.order_id = b.order_id
    LEFT JOIN reviews v ON v.merchant_id = $1 AND v.order_id = b.order_id
    LEFT JOIN plans a ON a.merchant_id = $1 AND a.order_id = b.order_id {PLAN.join}
WHERE b.merchant_id = $1 AND b.order_id = $2 AND b.session_hash = $3
"""
_BY_LINK = f"""SELECT {MONEY}, {STARTED} FROM orders o
    LEFT JOIN sdk_checkouts s ON s.merchant_id = $1 AND s.order_id = o.order_id WHERE o.merchant_id = $1 AND o.token = $2"""
_END = f"""SELECT d.document, {LEFT} FROM orders o
    JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id WHERE o.merchant_id = $1 AND o.order_id = $2"""
_CODE_SENT = f"""UPDATE checkout_sessions SET phone = $4, code_hash = $5, code_ends_at = $6, code_tries = 0,
    codes_sent = codes_sent + 1, verified_at = NULL, consumer_id = NULL, profile = NULL, shipping = NULL
    WHERE {_KEY} AND codes_sent < $7 RETURNING 1"""
# Counts an attempt, and marks the code as used if it is right ($5 is its hash). $8 is the largest number of attempts. A
# code that was used, replaced or deleted meanwhile changes nothing.
_RIGHT = "code_hash = $5 AND code_tries < $8 AND code_ends_at > $4"
_TRY = f"""UPDATE checkout_sessions SET code_tries = least(code_tries + 1, 1000),
    verified_at = CASE WHEN {_RIGHT} THEN $4 ELSE verified_at END,
    consumer_id = CASE WHEN {_RIGHT} THEN $6 ELSE consumer_id END,
    session_hash = CASE WHEN {_RIGHT} THEN $7 ELSE session_hash END,
    code_hash = CASE WHEN {_RIGHT} THEN NULL ELSE code_hash END
    WHERE {_KEY} AND code_hash IS NOT NULL RETURNING code_tries, code_ends_at, session_hash = $7 AS good"""
_RECOGNIZED = f"""UPDATE checkout_sessions SET verified_at = $4, consumer_id = $5, phone = $6, profile = $7::json
    WHERE {_KEY} AND verified_at IS NULL"""
_SHIPPING = f"UPDATE checkout_sessions SET shipping = $4::json WHERE {_KEY}"
_DETAILS = "SELECT save_details($1, $2, $3, $4::json, $5, $6, $7) AS saved"
_OLD = "SELECT DISTINCT merchant_id FROM checkout_sessions WHERE created_at < $1"
_FORGET = deleting_some("checkout_sessions", "order_id, session_hash", "created_at < $2")
# docs/retention.md gives the reason.
KEPT = timedelta(days=30)

SessionKey = tuple[UUID, UUID, bytes]
# The hash of the right code, the consumer who is verified by it, and the hash of the session's new secret.
RightCode = tuple[bytes, UUID, bytes]


@dataclass(frozen=True, slots=True)
class CheckoutSession:
    """The state of one browser. `verified_at` is set after the one-time code was right.

    `display` is None for an order of `POST /order`, whose consumer follows a link in a normal window. `device_hash` is None in a
    frame, where browsers do not store our cookie.
    """

    session_hash: bytes
    phone: str | None
    code_hash: bytes | None
    codes_sent: int
    verified_at: datetime | None
    consumer_id: UUID | None
    profile: Profile | None
    created_at: datetime
    display: Display | None = None
    shipping: ShippingAddress | None = None
    device_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session with its order, the order's document (JSON text that never changes), its plan and its merchant.

    `payer_id` is the consumer who agreed to pay last, `paid_in` the hash of the session in which that happened.
    """

    session: CheckoutSession
    merchant: Merchant
    order: Order
    token: UUID
    document: str
    plan: tuple[Installment, ...]
    start: Start | None
    left: bool
    reviewed: UUID | None
    payer_id: UUID | None
    paid_in: bytes | None


def profile_of(text: str | None) -> Profile | None:
    """Read a profile from its stored JSON."""
    if text is None:
        return None
    value = json.loads(text)
    return Profile(value["given_names"], value["surname"], value["email"], Address(**value["address"]))


def shipping_of(text: str | None) -> ShippingAddress | None:
    """Read the shipping address of an express order from its stored JSON."""
    if text is None:
        return None
    value = json.loads(text)
    return ShippingAddress(value["name"], Address(**value["address"]))


def profile_text(profile: Profile) -> str:
    """Write a profile as JSON."""
    return json.dumps(asdict(profile))


async def open_session(
    session: Session, key: SessionKey, now: datetime, display: Display | None, device_hash: bytes | None
) -> None:
    """Create the session of a new browser in this checkout."""
    await session.fetchrow(_OPEN, *key, now, display, device_hash)


async def shown_as(session: Session, key: SessionKey, display: Display) -> None:
    """Store that the same browser now shows the checkout with another display."""
    await session.fetchrow(_SHOWN, *key, display)


async def read(session: Session, key: SessionKey) -> Opened | None:
    """Read everything about this browser's checkout in one round trip. Return None for a forged or deleted session."""
    row = await session.fetchrow(_READ, *key)
    if row is None:
        return None
    return Opened(
        session=CheckoutSession(
            session_hash=row["session_hash"],
            phone=row["phone"],
            code_hash=row["code_hash"],
            codes_sent=row["codes_sent"],
            verified_at=row["verified_at"],
            consumer_id=row["consumer_id"],
            profile=profile_of(row["details"]),
            created_at=row["opened_at"],
            display=Display(row["display"]) if row["display"] else None,
            shipping=shipping_of(row["shipping"]),
            device_hash=row["device_hash"],
        ),
        merchant=Merchant(
            merchant_id=row["merchant_id"],
            name=row["merchant"],
            minimum=row["minimum"],
            maximum=row["maximum"],
            defer_funds_capture=row["defer_funds_capture"],
            profile=BodyProfile(row["body_profile"]),
            currency=row["merchant_currency"],
            origins=tuple(row["origins"]),
            own=own_of(row),
            onboarding=Onboarding(row["onboarding"]),
            suspended=row["suspended"],
        ),
        order=order_of(row),
        token=row["token"],
        document=row["document"],
        plan=plan_of(row),
        start=start_of(row),
        left=row["was_left"],
        reviewed=row["reviewed"],
        payer_id=row["payer_id"],
        paid_in=row["paid_in"],
    )


async def read_by_link(session: Session, merchant_id: UUID, token: UUID) -> tuple[Order, Start | None] | None:
    """Return the order of a checkout's link, and how its checkout was started; None for an unknown link."""
    row = await session.fetchrow(_BY_LINK, merchant_id, token)
    return None if row is None else (order_of(row), start_of(row))


async def read_end(session: Session, merchant_id: UUID, order_id: UUID) -> tuple[str, bool]:
    """Return the order's document (JSON text), and whether the consumer canceled the order."""
    row = await session.fetchrow(_END, merchant_id, order_id)
    assert row is not None
    return row["document"], row["was_left"]


async def code_sent(
    session: Session, key: SessionKey, phone: str, code_hash: bytes, ends_at: datetime, most: int
) -> bool:
    """Store the code sent to this number, and forget the number verified before. False if `most` codes were sent already."""
    return await session.fetchrow(_CODE_SENT, *key, phone, code_hash, ends_at, most) is not None


async def try_code(
    session: Session, key: SessionKey, now: datetime, right: RightCode | None, most: int
) -> tuple[int, datetime, bool] | None:
    """Count an attempt, and mark the code as used if it is right. `right` is None for a wrong code.

    Return (attempts so far, the code's expiration, whether the code was right, in time, and among the first `most`
    attempts), or None if there is no code. After a right code, the session has its new secret.
    """
    code_hash, consumer_id, new_hash = right or (None, None, None)
    row = await session.fetchrow(_TRY, *key, now, code_hash, consumer_id, new_hash, most)
    return None if row is None else (row["code_tries"], row["code_ends_at"], bool(row["good"]))


async def recognized(session: Session, key: SessionKey, known: CheckoutSession) -> None:
    """Mark the session as verified without a code, because the browser recognizes its consumer."""
    assert known.profile is not None
    profile = profile_text(known.profile)
    await session.fetchrow(_RECOGNIZED, *key, known.verified_at, known.consumer_id, known.phone, profile)


async def save_details(
    session: Session, key: SessionKey, consumer_id: UUID, phone: str, profile: Profile, now: datetime
) -> bool:
    """Store the consumer's details, for this checkout and the next one.

    False, without a change, if the session no longer exists, because the consumer was erased.
    """
    row = await session.fetchrow(_DETAILS, *key, profile_text(profile), consumer_id, phone, now)
    return row is not None and bool(row["saved"])


async def save_shipping(session: Session, key: SessionKey, shipping: ShippingAddress) -> None:
    """Store the shipping address of an express order."""
    await session.fetchrow(_SHIPPING, *key, json.dumps(asdict(shipping)))


async def forget(session: Session, now: datetime) -> int:
    """Delete sessions that began more than KEPT ago, some of each merchant. Return how many were deleted."""
    return await sweep(session, _OLD, _FORGET, now - KEPT)
