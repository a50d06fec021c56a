"""What an outcome writes into each table: the columns, and the rows of one outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from cuota.core.checkout.start import Start
from cuota.core.order.event import Event
from cuota.core.order.job import JobState
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import Notice
from cuota.core.plan.plan import Plan
from cuota.db.order.columns import INSTALLMENT, INSTALLMENT_CHANGES, Values, installment_row
from cuota.db.order.documents import encode
from cuota.db.order.outcome_parts import OutcomeTable, StatementPart, added, altered

DETAILS = added("details", "order_details", "reference text, document json")
STARTED = added(
    "started",
    "sdk_checkouts",
    "body_hash bytea, origin text, display text, flow text, integration text, additional json",
)


def started(order_id: UUID, start: Start) -> Values:
    """Return the row that says how the checkout was started. Its unique index rejects the same signed text twice."""
    additional = None if start.additional is None else encode(start.additional).decode()
    return (order_id, start.body_hash, start.origin, start.display, start.flow, start.integration, additional)


EVENTS = added(
    "event",
    "events",
    "sequence integer, type text, operation text, amount bigint, reference text, success boolean, message text, "
    "created_at timestamptz",
    "RETURNING merchant_id, order_id, sequence",
)
# Events that are not in the feed yet. A background job publishes them.
OUTBOX = StatementPart(
    "outboxed",
    "INSERT INTO outbox (merchant_id, order_id, sequence) SELECT merchant_id, order_id, sequence FROM event",
    (),
)


def events(order_id: UUID, happened: Sequence[Event], after: int, at: datetime) -> list[Values]:
    """Return the rows of these events, numbered on from the order's last event."""
    return [
        (order_id, number, e.type, e.operation, e.amount, e.reference, e.success, e.message, at)
        for number, e in enumerate(happened, after + 1)
    ]


def _events(outcome: Outcome) -> list[Values]:
    return events(outcome.order.order_id, outcome.events, outcome.order.events, outcome.at)


# If the consumer tries again after a declined card, the new agreement replaces the old one.
_PLAN = added(
    "plan",
    "plans",
    "consumer_id uuid, time_zone text, first_day date, agreement text, agreement_hash text, agreed_at timestamptz, "
    "payer json, browser bytea, card_hash bytea",
    """ON CONFLICT (merchant_id, order_id) DO UPDATE SET consumer_id = excluded.consumer_id,
        time_zone = excluded.time_zone, first_day = excluded.first_day, agreement = excluded.agreement,
        agreement_hash = excluded.agreement_hash, agreed_at = excluded.agreed_at,
        payer = excluded.payer, browser = excluded.browser, card_hash = excluded.card_hash""",
)


def _plan(outcome: Outcome) -> list[Values]:
    agreed = outcome.plan
    if agreed is None:
        return []
    return [(
        outcome.order.order_id, agreed.consumer_id, agreed.time_zone, agreed.first_day, agreed.agreement,
        agreed.agreement_hash, agreed.agreed_at, _payer(agreed), agreed.browser, agreed.card_hash,
    )]  # fmt: skip


def _payer(agreed: Plan) -> str:
    shipping = {} if agreed.shipping is None else {"shipping": asdict(agreed.shipping)}
    return json.dumps({**asdict(agreed.payer), "phone": agreed.phone, **shipping})


_CHARGE = added(
    "charge",
    "charges",
    "charge_id uuid, installment smallint, amount bigint, card_token text, card_brand text, card_last4 text, "
    "origin text, state text, created_at timestamptz",
)


def _charge(outcome: Outcome) -> list[Values]:
    asked = outcome.charge
    if asked is None:
        return []
    return [(
        outcome.order.order_id, asked.charge_id, asked.installment, asked.amount, asked.card_token,
        asked.card_brand, asked.card_last4, asked.origin, JobState.PENDING, outcome.at,
    )]  # fmt: skip


_CHARGE_SETTLED = altered(
    "charge_settled",
    "charges",
    "charge_id uuid, state text, reason text, settled_at timestamptz",
    "state = r.state, reason = r.reason, settled_at = r.settled_at",
    "AND t.charge_id = r.charge_id",
)


def _charge_settled(outcome: Outcome) -> list[Values]:
    settled = outcome.charge_settled
    if settled is None:
        return []
    return [(outcome.order.order_id, settled.job_id, settled.state, settled.reason, outcome.at)]


_MOVEMENT = added(
    "moved",
    "movements",
    "kind text, reference text, movement_id uuid, amount bigint, created_at timestamptz",
)


def _movement(outcome: Outcome) -> list[Values]:
    moved = outcome.movement
    if moved is None:
        return []
    return [(outcome.order.order_id, moved.kind, moved.reference, moved.movement_id, moved.amount, moved.at)]


# New installments, or changed ones.
_INSTALLMENTS = added(
    "installment",
    "installments",
    ", ".join(INSTALLMENT),
    f"ON CONFLICT (merchant_id, order_id, number) DO UPDATE SET {INSTALLMENT_CHANGES}",
)


def _installments(outcome: Outcome) -> list[Values]:
    return [(outcome.order.order_id, *installment_row(item)) for item in outcome.installments]


_TRANSFERS = added(
    "transfer",
    "transfers",
    "number integer, posting text, cause uuid, debit text, credit text, amount bigint, currency text, "
    "created_at timestamptz",
)


def _transfers(outcome: Outcome) -> list[Values]:
    order = outcome.order
    return [
        (order.order_id, n, t.posting, t.cause, t.debit, t.credit, t.amount, order.currency, outcome.at)
        for n, t in enumerate(outcome.transfers, order.transfers + 1)
    ]


_CARD_REFUNDS = added(
    "card_refund",
    "card_refunds",
    "card_refund_id uuid, charge_id uuid, amount bigint, state text, created_at timestamptz, try_at timestamptz",
)


def _card_refunds(outcome: Outcome) -> list[Values]:
    order_id, at = outcome.order.order_id, outcome.at
    return [
        (order_id, r.card_refund_id, r.charge_id, r.amount, JobState.PENDING, at, at)
        for r in outcome.card_refunds
    ]


_CARD_REFUND_SETTLED = altered(
    "card_refund_settled",
    "card_refunds",
    "card_refund_id uuid, state text, reason text, settled_at timestamptz",
    "state = r.state, reason = r.reason, settled_at = r.settled_at, try_at = NULL, tries = tries + 1",
    "AND t.card_refund_id = r.card_refund_id",
)


def _card_refund_settled(outcome: Outcome) -> list[Values]:
    settled = outcome.card_refund_settled
    if settled is None:
        return []
    assert settled.state is not JobState.PENDING
    return [(outcome.order.order_id, settled.job_id, settled.state, settled.reason, outcome.at)]


# Messages to the consumer. A background job sends them.
_NOTICES = added(
    "notice",
    "messages",
    "message_id uuid, kind text, installment smallint, amount bigint, day date, try_at timestamptz, state text, "
    "created_at timestamptz, standing json",
)


def _notices(outcome: Outcome) -> list[Values]:
    order_id, at = outcome.order.order_id, outcome.at
    return [
        (order_id, n.notice_id, n.kind, n.installment, n.amount, n.day, n.send_at, JobState.PENDING, at, _standing(n))
        for n in outcome.notices
    ]  # fmt: skip


def _standing(notice: Notice) -> str | None:
    stands = notice.standing
    if stands is None:
        return None
    left = [(day.isoformat(), cents) for day, cents in stands.left]
    return json.dumps({"left": left, "back": [(str(charge), cents) for charge, cents in stands.back]})


# The card that pays from now on.
_PLAN_CARD = altered(
    "plan_card",
    "plans",
    "card_token text, card_brand text, card_last4 text, card_hash bytea",
    "card_token = r.card_token, card_brand = r.card_brand, card_last4 = r.card_last4, card_hash = r.card_hash",
)


def _plan_card(outcome: Outcome) -> list[Values]:
    card = outcome.plan_card
    return (
        [] if card is None else [(outcome.order.order_id, card.token, card.brand, card.last4, card.card_hash)]
    )


TABLES: tuple[tuple[OutcomeTable, Callable[[Outcome], list[Values]]], ...] = (
    (_PLAN, _plan),
    (_CHARGE, _charge),
    (_CHARGE_SETTLED, _charge_settled),
    (_MOVEMENT, _movement),
    (_INSTALLMENTS, _installments),
    (_TRANSFERS, _transfers),
    (EVENTS, _events),
    (_CARD_REFUNDS, _card_refunds),
    (_CARD_REFUND_SETTLED, _card_refund_settled),
    (_NOTICES, _notices),
    (_PLAN_CARD, _plan_card),
)
