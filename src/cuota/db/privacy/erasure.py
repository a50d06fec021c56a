"""Finds and erases data that names a consumer. Data that money and `cuota verify` depend on stays."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from uuid import UUID, uuid4

from cuota.core.privacy.erasure import OpenObligations
from cuota.db.desk import api_requests, terms
from cuota.db.plan import plan_changes
from cuota.db.pool import Connection, Pool
from cuota.db.privacy.ownership import OWN_ROWS, Theirs
from cuota.db.session import Session

# Only operators' commands run these statements. They may read whole tables and take long.
_PATIENT = (
    "SET LOCAL statement_timeout = 0", "SET LOCAL enable_seqscan = on", "SET LOCAL enable_hashjoin = on",
    "SET LOCAL enable_material = on", "SET LOCAL plan_cache_mode = auto",
)  # fmt: skip
_STANDING = """
SELECT m.name AS merchant, d.reference, o.currency, o.charging IS NOT NULL AS charging,
    coalesce(i.unpaid, 0)::bigint AS unpaid, i.last_due,
    CASE WHEN o.status = 'Approved' THEN o.amount - o.captured - o.voided ELSE 0 END AS uncaptured,
    o.authorization_expires_at AS authorization_ends,
    coalesce(r.returning, 0)::bigint AS returning, coalesce(r.refused, 0)::bigint AS refused,
    EXISTS (SELECT FROM messages t WHERE t.merchant_id = $1 AND t.order_id = o.order_id AND t.kind = 'declined'
        AND t.state = 'pending') AS letter_waits, o.open_disputes, o.review IS NOT DISTINCT FROM 'waiting' AS review_waits
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    JOIN merchants m ON m.merchant_id = $1
    CROSS JOIN LATERAL (SELECT sum(amount + fee) AS unpaid, max(due_on) AS last_due FROM installments
        WHERE merchant_id = $1 AND order_id = o.order_id AND charge_id IS NULL AND amount + fee > 0) i
    CROSS JOIN LATERAL (SELECT sum(amount) FILTER (WHERE state = 'pending') AS returning,
        sum(amount) FILTER (WHERE state = 'failed') AS refused FROM card_refunds
        WHERE merchant_id = $1 AND order_id = o.order_id) r
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[]) ORDER BY o.order_id
"""
_BLANK = "SELECT blank_orders($1, $2::uuid[], $3) AS blanked"
_ADDITIONAL = """UPDATE sdk_checkouts SET additional = NULL
    WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND additional IS NOT NULL"""
_PLANS = """UPDATE plans SET payer = NULL, agreement = '', browser = NULL, card_hash = NULL, erased_at = $3,
    consumer_id = coalesce($4, consumer_id)
    WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND erased_at IS NULL AND ($5::uuid IS NULL OR consumer_id = $5) RETURNING 1"""
_CARDS = """UPDATE charges c SET card_hash = NULL FROM plans p WHERE p.merchant_id = $1 AND p.order_id = ANY ($2::uuid[])
    AND ($3::uuid IS NULL OR p.consumer_id = $3) AND c.merchant_id = $1 AND c.order_id = ANY ($2::uuid[])
    AND c.order_id = p.order_id AND c.card_hash IS NOT NULL"""
# The operator's words about a review. Its numbers stay, like those of a decision. $3 is the consumer, or null for everybody.
_REVIEWED = """UPDATE reviews SET reason = '' WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND reason <> ''
    AND ($3::uuid IS NULL OR consumer_id = $3)"""
# The texts and files of disputes, and where a parcel went.
_WRITTEN = "UPDATE dispute_evidence SET text = NULL WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND text IS NOT NULL"
# This includes files whose statement was never saved because the service was killed in between.
_FILES = """DELETE FROM dispute_files f USING disputes d WHERE f.merchant_id = $1 AND d.merchant_id = $1
    AND d.order_id = ANY ($2::uuid[]) AND f.dispute_id = d.dispute_id"""
_RETURNS = """UPDATE return_notices SET carrier = '', tracking = ''
    WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[])"""
# Messages as they were sent.
_SAID = f"""UPDATE messages SET said = NULL WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND said IS NOT NULL
    AND ($3::uuid IS NULL OR {OWN_ROWS["messages"]})"""
# A block stays, so that nobody can end it by an erasure. Only its reason is removed.
_BLOCKS = "UPDATE consumer_blocks SET reason = NULL WHERE consumer_id = $1 AND reason IS NOT NULL"
_ANSWERS = """UPDATE delivery_attempts SET answer = NULL
    WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND answer IS NOT NULL"""
_UNSENT = f"""UPDATE messages SET state = 'failed', reason = 'the consumer was erased', settled_at = $4, try_at = NULL
    WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[]) AND state = 'pending' AND {OWN_ROWS["messages"]}"""
# Another person may have opened the same checkout.
_BROWSERS = """DELETE FROM checkout_sessions s USING orders o WHERE s.merchant_id = $1 AND s.order_id = ANY ($2::uuid[])
    AND s.consumer_id IS NULL AND o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[]) AND o.order_id = s.order_id
    AND o.status <> 'Created' RETURNING 1"""
# Orders of somebody else that name this person. The merchant may still need the address of an order that is not shipped.
_ENDED = """SELECT order_id FROM orders WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[])
    AND (status IN ('Declined', 'Abandoned') OR (status = 'Approved' AND amount <= captured + voided))"""
_OTHER_BROWSERS = "DELETE FROM checkout_sessions WHERE phone = $1 OR consumer_id = $2 RETURNING 1"
_ACCOUNT = "DELETE FROM account_sessions WHERE phone = $1 OR consumer_id = $2 RETURNING 1"
_REMEMBERED = "DELETE FROM remembered_browsers WHERE consumer_id = $1 RETURNING 1"
# The rail to Stripe also deletes these customers at Stripe (flows/privacy/forget_cards.py).
AT_STRIPE = """WITH gone AS (DELETE FROM card_processor.customers WHERE consumer_id = $1 RETURNING customer, account, consumer_id)
    INSERT INTO card_processor.erased_customers (customer, account, consumer_id) SELECT customer, account, consumer_id FROM gone
    ON CONFLICT DO NOTHING"""
_CONSUMER = "DELETE FROM consumers WHERE consumer_id = $1 RETURNING 1"
_NOTE = "INSERT INTO erasures (consumer_id, erased_at, orders) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_NOTED = "SELECT max(erased_at) AS at FROM erasures WHERE consumer_id = $1"
_MAILS = """
SELECT profile ->> 'email' AS email FROM consumers WHERE consumer_id = $1
UNION SELECT payer ->> 'email' FROM plans WHERE consumer_id = $1
UNION SELECT profile ->> 'email' FROM checkout_sessions WHERE consumer_id = $1
"""


@contextlib.asynccontextmanager
async def patient(pool: Pool) -> AsyncIterator[Connection]:
    """Open a transaction without a statement timeout, in which PostgreSQL may read whole tables."""
    async with pool.session() as connection, connection.transaction():
        for setting in _PATIENT:
            await connection.execute(setting)
        yield connection


async def standing(session: Session, theirs: Theirs) -> list[OpenObligations]:
    """Return the open obligations of each order."""
    return [
        OpenObligations(**row)
        for merchant_id, order_ids in theirs.orders.items()
        for row in await session.fetch(_STANDING, merchant_id, order_ids)
    ]


async def mails(session: Session, consumer_id: UUID) -> list[str]:
    """Return every mail address that the consumer entered."""
    return [row["email"] for row in await session.fetch(_MAILS, consumer_id) if row["email"]]


async def blank_orders(
    session: Session, merchant_id: UUID, order_ids: Iterable[UUID], now: datetime
) -> tuple[int, int]:
    """Remove every consumer from orders that ended long ago. Return the numbers of orders and plans."""
    ids = list(order_ids)
    orders = await _blank(session, merchant_id, ids, now)
    return orders, await _forget_rows(session, merchant_id, ids, now, None, None)


async def _blank(session: Session, merchant_id: UUID, ids: list[UUID], now: datetime) -> int:
    """Remove personal data from these orders, except from rows of which an order may have several consumers'."""
    # This comes first, because it locks the merchant's search terms: an erasure and the retention job, which lock several rows of
    # each table, run one after the other for each merchant, and never deadlock.
    await terms.forget(session, merchant_id, ids)
    row = await session.fetchrow(_BLANK, merchant_id, ids, now)
    await session.fetch(_ADDITIONAL, merchant_id, ids)
    for sql in (_FILES, _WRITTEN, _RETURNS):
        await session.fetch(sql, merchant_id, ids)
    await plan_changes.forget(session, merchant_id, ids)
    # The logged bodies are masked, but a merchant's reference may contain personal data.
    await api_requests.forget_orders(session, merchant_id, ids)
    return row["blanked"] if row else 0


async def _forget_rows(
    session: Session,
    merchant_id: UUID,
    ids: list[UUID],
    now: datetime,
    consumer_id: UUID | None,
    new_id: UUID | None,
) -> int:
    """Remove this consumer, or every consumer, from messages, reviews and plans. Return the number of plans.

    `new_id`, which belongs to no consumer, replaces the consumer's id in the plans. This comes last, because the plan says whose the
    messages are.
    """
    await session.fetch(_REVIEWED, merchant_id, ids, consumer_id)
    await session.fetch(_SAID, merchant_id, ids, consumer_id)
    await session.fetch(_CARDS, merchant_id, ids, consumer_id)
    return len(await session.fetch(_PLANS, merchant_id, ids, now, new_id, consumer_id))


async def erase(
    session: Session, theirs: Theirs, consumer_id: UUID, phone: str, now: datetime
) -> dict[str, int]:
    """Erase everything inside the caller's transaction. Return the number of rows by description."""
    done = dict.fromkeys(("orders", "plans", "browsers", "profiles"), 0)
    # The plans must no longer belong to this consumer: the next owner of the phone number must not find them at /account.
    nobody = uuid4()
    for merchant_id, whole, rows in theirs.merchants():
        done["orders"] += await _blank(session, merchant_id, whole, now)
        await session.fetch(_ANSWERS, merchant_id, whole)
        await session.fetch(_UNSENT, merchant_id, rows, consumer_id, now)
        done["browsers"] += len(await session.fetch(_BROWSERS, merchant_id, whole))
        done["plans"] += await _forget_rows(session, merchant_id, rows, now, consumer_id, nobody)
    for merchant_id, named in theirs.named.items():
        ended = [row["order_id"] for row in await session.fetch(_ENDED, merchant_id, named)]
        row = await session.fetchrow(_BLANK, merchant_id, ended, now)
        done["orders"] += row["blanked"] if row else 0
        await session.fetch(_ADDITIONAL, merchant_id, ended)
    for sql in (_OTHER_BROWSERS, _ACCOUNT):
        done["browsers"] += len(await session.fetch(sql, phone, consumer_id))
    done["browsers"] += len(await session.fetch(_REMEMBERED, consumer_id))
    await session.fetch(AT_STRIPE, consumer_id)
    await session.fetch(_BLOCKS, consumer_id)
    done["profiles"] = len(await session.fetch(_CONSUMER, consumer_id))
    if any(done.values()):
        await session.fetch(_NOTE, consumer_id, now, done["orders"])
    return done


async def erased_at(session: Session, consumer_id: UUID) -> datetime | None:
    """Return when this consumer was last erased, or None."""
    row = await session.fetchrow(_NOTED, consumer_id)
    return None if row is None else row["at"]
