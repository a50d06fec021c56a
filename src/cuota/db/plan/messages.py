"""Messages to consumers: saved with the change that they are about, claimed by a worker, and stored with their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from operator import itemgetter
from uuid import UUID

from cuota.core.checkout.card import card_name
from cuota.core.installment import COUNT
from cuota.core.plan.notice import Notice, NoticeKind, PlanStanding
from cuota.db.cluster.across import claim_across
from cuota.db.gathered import by_batches
from cuota.db.nested import Nested
from cuota.db.plan import plan_changes
from cuota.db.plan.addressee import NOT_FOR_THE_PAYER, addressee
from cuota.db.plan.plans import CARD, CARD_JOIN
from cuota.db.pool import GONE, Pool, Row
from cuota.db.session import Session

# The lease of a claim, longer than a rail's timeout: if a worker dies, another one takes over after this time.
LEASE = timedelta(seconds=60)


class Channel(StrEnum):
    """How a message is sent."""

    TEXT = "text"
    MAIL = "mail"


_CHARGES = Nested(
    "charges",
    ("c.charge_id", "c.card_brand", "c.card_last4"),
    "FROM charges c WHERE c.merchant_id = $1 AND c.order_id = due.order_id AND c.state = 'succeeded'",
)
# The card of the charge that the message is about, and what became of the installment since.
_CHARGED = """LEFT JOIN LATERAL (SELECT c.card_brand, c.card_last4 FROM charges c WHERE c.merchant_id = $1
        AND c.order_id = due.order_id AND c.installment = due.installment AND c.created_at <= due.created_at
        ORDER BY c.created_at DESC LIMIT 1) x ON true
    LEFT JOIN installments i ON i.merchant_id = $1 AND i.order_id = due.order_id AND i.number = due.installment"""
# The recipient is the plan's consumer. An order that was declined or referred has no plan; there the recipient is the consumer of
# the decision or of the review.
# An order may have several disputes, one after the other, and the first message about each is dispute_opened. So the next message about a
# dispute is about the same dispute if it has another kind.
# A claim sets try_at to the end of its lease. The UPDATE repeats the condition, because SKIP LOCKED alone claims some rows
# twice. MATERIALIZED runs the SELECT once: in a join, PostgreSQL may run it again and take more rows than the limit.


def _claiming(by_text: str) -> str:
    return f"""
WITH due AS MATERIALIZED (
    SELECT order_id, message_id, kind, installment, created_at FROM messages WHERE by_text = {by_text} AND merchant_id = $1
        AND try_at <= $2 ORDER BY try_at LIMIT $4 FOR UPDATE SKIP LOCKED
) UPDATE messages m SET try_at = $3, tries = least(m.tries + 1, 1000) FROM due
    JOIN merchants s ON s.merchant_id = $1 JOIN orders o ON o.merchant_id = $1 AND o.order_id = due.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = due.order_id {CARD_JOIN} {_CHARGES.join} {_CHARGED}
    LEFT JOIN LATERAL (SELECT d.reasons, d.credit_limit, d.consumer_id FROM decisions d WHERE {addressee("due.kind")} = 'decision'
        AND d.merchant_id = $1 AND d.order_id = due.order_id AND NOT d.approved ORDER BY d.decided_at DESC LIMIT 1) g ON true
    LEFT JOIN plan_changes h ON due.kind = 'plan_changed' AND h.merchant_id = $1 AND h.order_id = due.order_id
        AND h.message_id = due.message_id
    LEFT JOIN reviews v ON v.merchant_id = $1 AND v.order_id = due.order_id AND {addressee("due.kind")} = 'review'
WHERE m.merchant_id = $1 AND m.order_id = due.order_id AND m.message_id = due.message_id AND m.try_at <= $2
RETURNING m.merchant_id, m.order_id, m.message_id, m.kind, m.installment, m.amount, m.day, m.created_at,
    m.tries, m.standing, EXISTS (SELECT 1 FROM messages l WHERE l.merchant_id = $1 AND l.order_id = m.order_id
        AND l.standing IS NOT NULL AND l.message_id > m.message_id) AS overtaken,
    m.kind LIKE 'dispute%' AND coalesce((SELECT l.kind FROM messages l WHERE l.merchant_id = $1 AND l.order_id = m.order_id
        AND l.kind LIKE 'dispute%' AND l.message_id > m.message_id ORDER BY l.message_id LIMIT 1), 'dispute_opened')
        <> 'dispute_opened' AS decided_since, coalesce(s.display_name, s.name) AS name, o.currency,
    (SELECT d.reference FROM order_details d WHERE d.merchant_id = $1 AND d.order_id = m.order_id) AS reference,
    p.payer, p.time_zone, {CARD}, {_CHARGES.columns}, x.card_brand AS charged_brand, x.card_last4 AS charged_last4,
    i.charge_at, i.charge_id IS NOT NULL OR i.amount + i.fee = 0 AS nothing_to_pay,
    CASE WHEN m.kind = 'plan_started' THEN p.agreement WHEN m.kind = 'plan_changed' THEN h.text END AS agreement,
    (SELECT count(*) FROM installments i WHERE i.merchant_id = $1 AND i.order_id = m.order_id) AS payments,
    (SELECT max(a.changed_at) FROM plan_changes a WHERE a.merchant_id = $1 AND a.order_id = m.order_id
        AND a.changed_at <= m.created_at) AS changed_at,
    g.reasons, g.credit_limit, coalesce(g.consumer_id, v.consumer_id) AS consumer_id, v.time_zone AS review_zone, o.token,
    o.expires_at, o.status = 'Created' AND o.charging IS NULL AS is_open, o.paused_at IS NOT NULL AS paused
"""


# Texts and mails are claimed separately, so that a mail server that hangs delays no text. The column by_text says with which of them a
# message is claimed; the database function save_orders sets it: true for answers that a consumer waits for, and for messages to a payer
# without a mail address. Letters are claimed with the mails.
_MERCHANTS_WITH_TEXTS = "SELECT DISTINCT merchant_id FROM messages WHERE by_text AND try_at <= $1"
_MERCHANTS_WITH_MAILS = "SELECT DISTINCT merchant_id FROM messages WHERE NOT by_text AND try_at <= $1"
_CLAIM_TEXTS = _claiming("true")
_CLAIM_MAILS = _claiming("false")
_CLAIMS = {
    Channel.TEXT: (_MERCHANTS_WITH_TEXTS, _CLAIM_TEXTS),
    Channel.MAIL: (_MERCHANTS_WITH_MAILS, _CLAIM_MAILS),
}
# Consumers belong to no merchant, so a separate statement reads them.
_CONSUMERS = "SELECT consumer_id, phone, profile FROM consumers WHERE consumer_id = ANY ($1::uuid[])"
_SETTLED = """UPDATE messages m SET state = s.state, reason = s.reason, settled_at = s.settled_at, said = s.said, try_at = NULL
    FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::bytea[])
        AS s (order_id, message_id, state, reason, settled_at, said)
    WHERE m.merchant_id = $1 AND m.order_id = ANY ($2::uuid[]) AND m.order_id = s.order_id AND m.message_id = s.message_id
        AND m.state = 'pending'"""
_AGAIN = """UPDATE messages SET try_at = $4, reason = $5
    WHERE merchant_id = $1 AND order_id = $2 AND message_id = $3 AND state = 'pending'"""
_LATER = """UPDATE messages m SET try_at = l.try_at, tries = greatest(m.tries - 1, 0)
    FROM unnest($2::uuid[], $3::uuid[], $4::timestamptz[]) AS l (order_id, message_id, try_at)
    WHERE m.merchant_id = $1 AND m.order_id = ANY ($2::uuid[]) AND m.order_id = l.order_id AND m.message_id = l.message_id
        AND m.state = 'pending'"""


@dataclass(frozen=True, slots=True)
class Declined:
    """The reasons of a declined order, and the recipient of the letter. The amounts are in cents."""

    reasons: tuple[str, ...]
    limit: int | None
    name: str


@dataclass(frozen=True, slots=True)
class ReviewedCheckout:
    """The checkout of an order that was referred to a person. `zone` is the consumer's time zone.

    `is_open`: the consumer can still complete it, if it has not expired.
    """

    token: UUID
    zone: str
    expires_at: datetime
    is_open: bool


@dataclass(frozen=True, slots=True)
class DueMessage:
    """A claimed message, its recipient, and the data for its text. `tries` includes the next attempt.

    `reference` is the merchant's own number of the order. `card` is the card that pays the plan, `cards` are the cards
    that paid so far, by charge. `zone` is the consumer's time zone, `agreement` the accepted agreement as it is stored.
    For a message about a change of the plan, `agreement` is the text of the change. `changed_at` is when the plan was last changed
    for a consumer in hardship, `payments` how many installments it has. `charged` is the card of the charge that the message is
    about; `charge_at` is when its installment is charged next, `nothing_to_pay` whether it was paid or canceled. `declined` is the
    content of the letter about a declined order. `overtaken`: a later message says what is left to pay. `decided_since`:
    the message is about a dispute, and a later message has a newer state of the same dispute. `review` is the checkout of an order
    that was referred to a person. `paused`: the plan is paused, because a dispute is open.
    """

    merchant_id: UUID
    order_id: UUID
    notice: Notice
    tries: int
    phone: str | None
    email: str | None
    merchant: str
    reference: str
    currency: str
    card: str = ""
    cards: Mapping[UUID, str] = field(default_factory=dict)
    zone: str | None = None
    agreement: str | None = None
    declined: Declined | None = None
    overtaken: bool = False
    payments: int = COUNT
    changed_at: datetime | None = None
    review: ReviewedCheckout | None = None
    charged: str = ""
    charge_at: datetime | None = None
    nothing_to_pay: bool = False
    decided_since: bool = False
    paused: bool = False

    @property
    def name(self) -> str:
        """The name in a letter; empty for other messages, which have none."""
        return self.declined.name if self.declined else ""


@dataclass(frozen=True, slots=True)
class SentText:
    """A message as it was sent. `attached`: an agreement followed the text in the mail. `name` is the name in the text, if there is one."""

    subject: str
    text: str
    phone: str | None
    email: str | None
    attached: bool = False
    name: str = ""


# The merchant and the columns of _SETTLED for one message.
_Result = tuple[UUID, UUID, UUID, str, str | None, datetime, bytes | None]
# The merchant and the columns of _LATER for one message.
_Postponed = tuple[UUID, UUID, UUID, datetime]


async def claim(session: Session, now: datetime, limit: int, channel: Channel) -> list[DueMessage]:
    """Claim messages of a channel that are due, at most `limit`. The order of the merchants is random."""
    rows = await claim_across(session, *_CLAIMS[channel], now, LEASE, limit)
    consumers = await _consumers_without_plan(session, rows)
    return [_due_of(row, consumers.get(row["consumer_id"])) for row in rows]


async def _consumers_without_plan(session: Session, rows: list[Row]) -> dict[UUID, Row]:
    ids = [row["consumer_id"] for row in rows if row["consumer_id"]]
    return {row["consumer_id"]: row for row in await session.fetch(_CONSUMERS, ids)} if ids else {}


def _due_of(row: Row, consumer: Row | None) -> DueMessage:
    declined = None
    who = {} if NoticeKind(row["kind"]) in NOT_FOR_THE_PAYER else json.loads(row["payer"] or "{}")
    if consumer:
        who = {**json.loads(consumer["profile"] or "{}"), "phone": consumer["phone"]}
        name = f"{who.get('given_names', '')} {who.get('surname', '')}".strip()
        if row["reasons"] is not None:
            declined = Declined(tuple(row["reasons"]), row["credit_limit"], name or "customer")
    review = None
    if row["review_zone"] is not None:
        review = ReviewedCheckout(row["token"], row["review_zone"], row["expires_at"], row["is_open"])
    notice = Notice(
        row["message_id"], NoticeKind(row["kind"]), row["installment"], row["amount"], row["day"], row["created_at"],
        _standing_of(row["standing"]),
    )  # fmt: skip
    cards = {charge: card_name(brand, last4) for charge, brand, last4 in _CHARGES.of(row)}
    card = card_name(row["card_brand"], row["card_last4"]) if row["card_token"] else ""
    return DueMessage(
        row["merchant_id"], row["order_id"], notice, row["tries"], who.get("phone"), who.get("email"), row["name"],
        row["reference"], row["currency"], card, cards, row["time_zone"], row["agreement"], declined, row["overtaken"],
        row["payments"] or COUNT, row["changed_at"], review,
        card_name(row["charged_brand"], row["charged_last4"]) if row["charged_last4"] else "",
        row["charge_at"], bool(row["nothing_to_pay"]), row["decided_since"], row["paused"],
    )  # fmt: skip


def _standing_of(text: str | None) -> PlanStanding | None:
    if text is None:
        return None
    value = json.loads(text)
    left = tuple((date.fromisoformat(day), cents) for day, cents in value["left"])
    return PlanStanding(left, tuple((UUID(charge), cents) for charge, cents in value["back"]))


async def settle(
    pool: Pool, due: DueMessage, reason: str | None, at: datetime, said: bytes | None = None
) -> None:
    """Record that the message was sent (`reason` None) or given up. `said` is the encrypted text as it was sent."""
    state = "sent" if reason is None else "failed"
    ids = (due.merchant_id, due.order_id, due.notice.notice_id)
    if reason is None and due.notice.kind is NoticeKind.PLAN_CHANGED:
        # This comes first, because a settled message is not processed again.
        await plan_changes.told(pool, *ids, at)
    result = (*ids, state, reason, at, said)
    try:
        await pool.together(_RESULTS, due.merchant_id, result)
    except GONE:
        # The entry node may be gone, while the message's own node is not. Without a result, the message would be sent again.
        await _settle_together(pool, [result])


async def _settle_together(session: Session, results: Sequence[_Result]) -> list[None]:
    # Sorted, so that two batches usually lock their rows in the same sequence.
    merchant_ids, *columns = zip(*sorted(results, key=itemgetter(1, 2)), strict=True)
    await session.fetch(_SETTLED, merchant_ids[0], *columns)
    return [None] * len(results)


_RESULTS = by_batches(_settle_together)


async def wait_for_day(pool: Pool, due: DueMessage, at: datetime) -> None:
    """Postpone a message during the consumer's night: it is due at `at`, and this claim does not count as an attempt."""
    ids = (due.merchant_id, due.order_id, due.notice.notice_id)
    await pool.together(_POSTPONED, due.merchant_id, (*ids, at))


async def _postpone_together(session: Session, postponed: Sequence[_Postponed]) -> list[None]:
    # Sorted for the same reason as the results.
    merchant_ids, *columns = zip(*sorted(postponed, key=itemgetter(1, 2)), strict=True)
    await session.fetch(_LATER, merchant_ids[0], *columns)
    return [None] * len(postponed)


_POSTPONED = by_batches(_postpone_together)


async def try_again(session: Session, due: DueMessage, at: datetime, reason: str) -> None:
    """Record that the rail could not send the message. It is retried at `at`."""
    await session.fetchrow(_AGAIN, due.merchant_id, due.order_id, due.notice.notice_id, at, reason)
