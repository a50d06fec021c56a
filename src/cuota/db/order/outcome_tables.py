"""The columns of each table that an outcome writes, and the rows of one outcome.

`nth` is the number of the outcome's order in the call, from 1.
"""

from __future__ import annotations

import hashlib
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
from cuota.db.order.columns import CHANGED, INSTALLMENT, NEW, Values, installment_row
from cuota.db.order.documents import encode
from cuota.db.order.save_call import ArrayTable, JsonTable

Rows = list[Values]


def _columns(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


CHANGED_ORDERS = ArrayTable("orders", CHANGED)
NEW_ORDERS = ArrayTable("orders", NEW)
DETAILS = ArrayTable("order_details", _columns("order_id uuid, reference text, document json"))
MOVEMENTS = ArrayTable(
    "movements",
    _columns(
        "order_id uuid, kind text, reference text, movement_id uuid, amount bigint, created_at timestamptz"
    ),
)
TRANSFERS = ArrayTable(
    "transfers",
    _columns(
        "order_id uuid, number integer, posting text, cause uuid, debit text, credit text, amount bigint, "
        "currency text, created_at timestamptz"
    ),
)
# Each event is also put into the outbox. A background job publishes the rows of the outbox.
EVENTS = ArrayTable(
    "events",
    _columns(
        "order_id uuid, sequence integer, type text, operation text, amount bigint, reference text, "
        "success boolean, message text, created_at timestamptz"
    ),
)
STARTED = JsonTable(
    "sdk_checkouts",
    _columns(
        "nth integer, body_hash bytea, origin text, display text, flow text, integration text, additional text"
    ),
)


def started(nth: int, start: Start) -> Values:
    """Return the row that says how the checkout was started. Its unique index rejects the same signed text twice."""
    additional = None if start.additional is None else encode(start.additional).decode()
    return (nth, start.body_hash, start.origin, start.display, start.flow, start.integration, additional)


def events(order_id: UUID, happened: Sequence[Event], after: int, at: datetime) -> Rows:
    """Return the rows of these events. Their numbers continue after the order's last event."""
    return [
        (order_id, number, e.type, e.operation, e.amount, e.reference, e.success, e.message, at)
        for number, e in enumerate(happened, after + 1)
    ]


def _movement(outcome: Outcome) -> Rows:
    order_id, first = outcome.order.order_id, outcome.movement
    if first is None:
        return []
    return [
        (order_id, moved.kind, moved.reference, moved.movement_id, moved.amount, moved.at)
        for moved in (first, *outcome.more_movements)
    ]


def _transfers(outcome: Outcome) -> Rows:
    order = outcome.order
    return [
        (order.order_id, n, t.posting, t.cause, t.debit, t.credit, t.amount, order.currency, outcome.at)
        for n, t in enumerate(outcome.transfers, order.transfers + 1)
    ]


def _events(outcome: Outcome) -> Rows:
    return events(outcome.order.order_id, outcome.events, outcome.order.events, outcome.at)


# If the consumer tries again after a declined card, the new agreement replaces the old one.
_PLANS = JsonTable(
    "plans",
    _columns(
        "nth integer, consumer_id uuid, time_zone text, first_day date, agreement text, agreement_hash text, "
        "agreed_at timestamptz, payer text, browser bytea, card_hash bytea"
    ),
)


def _plan(outcome: Outcome, nth: int) -> Rows:
    agreed = outcome.plan
    if agreed is None:
        return []
    return [(
        nth, agreed.consumer_id, agreed.time_zone, agreed.first_day, agreed.agreement,
        agreed.agreement_hash, agreed.agreed_at, _payer(agreed), agreed.browser, agreed.card_hash,
    )]  # fmt: skip


def _payer(agreed: Plan) -> str:
    shipping = {} if agreed.shipping is None else {"shipping": asdict(agreed.shipping)}
    return json.dumps({**asdict(agreed.payer), "phone": agreed.phone, **shipping})


_CHARGES = JsonTable(
    "charges",
    _columns(
        "nth integer, charge_id uuid, installment smallint, amount bigint, card_token text, card_brand text, "
        "card_last4 text, origin text, state text, created_at timestamptz"
    ),
)


def _charge(outcome: Outcome, nth: int) -> Rows:
    asked = outcome.charge
    if asked is None:
        return []
    return [(
        nth, asked.charge_id, asked.installment, asked.amount, asked.card_token,
        asked.card_brand, asked.card_last4, asked.origin, JobState.PENDING, outcome.at,
    )]  # fmt: skip


_CHARGES_SETTLED = JsonTable(
    "charges_settled",
    _columns("nth integer, charge_id uuid, state text, reason text, settled_at timestamptz"),
)


def _charge_settled(outcome: Outcome, nth: int) -> Rows:
    settled = outcome.charge_settled
    if settled is None:
        return []
    return [(nth, settled.job_id, settled.state, settled.reason, outcome.at)]


# The rows are new or changed installments.
_INSTALLMENTS = JsonTable("installments", ("nth integer", *INSTALLMENT))


def _installments(outcome: Outcome, nth: int) -> Rows:
    return [(nth, *installment_row(item)) for item in outcome.installments]


_CARD_REFUNDS = JsonTable(
    "card_refunds",
    _columns(
        "nth integer, card_refund_id uuid, charge_id uuid, amount bigint, state text, created_at timestamptz, "
        "try_at timestamptz"
    ),
)


def _card_refunds(outcome: Outcome, nth: int) -> Rows:
    at = outcome.at
    return [
        (nth, r.card_refund_id, r.charge_id, r.amount, JobState.PENDING, at, at) for r in outcome.card_refunds
    ]


_CARD_REFUNDS_SETTLED = JsonTable(
    "card_refunds_settled",
    _columns("nth integer, card_refund_id uuid, state text, reason text, settled_at timestamptz"),
)


def _card_refunds_settled(outcome: Outcome, nth: int) -> Rows:
    assert all(each.state is not JobState.PENDING for each in outcome.card_refunds_settled)
    return [(nth, each.job_id, each.state, each.reason, outcome.at) for each in outcome.card_refunds_settled]


# Messages to the consumer. A background job sends them.
_MESSAGES = JsonTable(
    "messages",
    _columns(
        "nth integer, message_id uuid, kind text, installment smallint, amount bigint, day date, try_at timestamptz, "
        "state text, created_at timestamptz, standing text"
    ),
)


def _notices(outcome: Outcome, nth: int) -> Rows:
    at = outcome.at
    return [
        (nth, n.notice_id, n.kind, n.installment, n.amount, n.day, n.send_at, JobState.PENDING, at, _standing(n))
        for n in outcome.notices
    ]  # fmt: skip


def _standing(notice: Notice) -> str | None:
    stands = notice.standing
    if stands is None:
        return None
    left = [(day.isoformat(), cents) for day, cents in stands.left]
    return json.dumps({"left": left, "back": [(str(charge), cents) for charge, cents in stands.back]})


# The row is the card that pays from now on.
_PLAN_CARDS = JsonTable(
    "plan_cards",
    _columns("nth integer, card_token text, card_brand text, card_last4 text, card_hash bytea"),
)


def _plan_card(outcome: Outcome, nth: int) -> Rows:
    card = outcome.plan_card
    return [] if card is None else [(nth, card.token, card.brand, card.last4, card.card_hash)]


_DECISIONS = JsonTable(
    "decisions",
    _columns(
        "nth integer, decided_at timestamptz, approved boolean, reasons text[], policy_version text, inputs text, "
        "decision_id uuid, consumer_id uuid, score integer, credit_limit bigint, inputs_hash bytea"
    ),
)


def _decision(outcome: Outcome, nth: int) -> Rows:
    decided = outcome.decision
    if decided is None:
        return []
    made = decided.decision
    inputs = json.dumps(made.inputs)
    return [(
        nth, outcome.at, made.approved, list(made.reasons), made.policy_version, inputs, decided.decision_id,
        decided.consumer_id, made.score, made.limit, hashlib.sha256(inputs.encode()).digest(),
    )]  # fmt: skip


# The rows are the signals of the attempt to pay.
_SIGNALS = JsonTable("signals", _columns("nth integer, kind text, value_hash bytea, at timestamptz"))


def _signals(outcome: Outcome, nth: int) -> Rows:
    # A referral is a press of the button too.
    source = outcome.decision or outcome.review
    seen = source.signals if source is not None else ()
    return [(nth, signal.kind, signal.value_hash, outcome.at) for signal in seen]


# This list has the order of the parameters of `save_orders`.
ARRAYS: tuple[tuple[ArrayTable, Callable[[Outcome], Rows]], ...] = (
    (MOVEMENTS, _movement),
    (TRANSFERS, _transfers),
    (EVENTS, _events),
)
JSONS: tuple[tuple[JsonTable, Callable[[Outcome, int], Rows]], ...] = (
    (_INSTALLMENTS, _installments),
    (_CARD_REFUNDS, _card_refunds),
    (_MESSAGES, _notices),
    (_CHARGES, _charge),
    (_CHARGES_SETTLED, _charge_settled),
    (_CARD_REFUNDS_SETTLED, _card_refunds_settled),
    (_PLANS, _plan),
    (_PLAN_CARDS, _plan_card),
    (_DECISIONS, _decision),
    (_SIGNALS, _signals),
)
