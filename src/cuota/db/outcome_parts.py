"""The parts of the one statement that saves an outcome. Each takes its rows `FROM changed`: no order, no write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.event import Event
from cuota.core.order import Order
from cuota.core.outcome import JobState, Outcome, Plan
from cuota.core.start import Start
from cuota.db.documents import encode


@dataclass(frozen=True, slots=True)
class Part:
    """One CTE: its name, its SQL with parameters numbered from :1, and their values."""

    name: str
    sql: str
    values: tuple[object, ...]


_HELD = """SELECT 1 FROM idempotency_keys
    WHERE merchant_id = :1 AND key = :2 AND lease = :3 AND status IS NULL FOR UPDATE"""
_KEPT = """UPDATE idempotency_keys k SET status = :4::smallint, body = :5 FROM changed
    WHERE k.merchant_id = :1 AND k.key = :2 AND k.lease = :3 AND k.status IS NULL"""


def held(merchant_id: UUID, key: str, lease: UUID) -> Part:
    """The lease on an Idempotency-Key, locked: without it nothing is written."""
    return Part("held", _HELD, (merchant_id, key, lease))


def kept(merchant_id: UUID, key: str, lease: UUID, status: int, body: bytes) -> Part:
    """The answer for an Idempotency-Key: kept only if what it answers was written."""
    return Part("kept", _KEPT, (merchant_id, key, lease, status, body))


_CHANGED = """UPDATE orders SET version = version + 1, status = :4, captured = :5, voided = :6, refunded = :7,
    fee_returned = :8, lapsed = :9, card_failures = :10, charging = :11, charging_since = :12, transfers = :13,
    events = :14, authorization_expires_at = :15, due_at = :16,
    warned = :17, collect_at = :18 WHERE merchant_id = :1 AND order_id = :2 AND version = :3{only} RETURNING merchant_id, order_id"""
_CHANGED_PLAIN = _CHANGED.format(only="")
_CHANGED_LEASED = _CHANGED.format(only=" AND EXISTS (SELECT FROM held)")
_CHANGED_GUARDED = _CHANGED.format(only=" AND EXISTS (SELECT FROM guarded)")


def changed(outcome: Outcome, *, leased: bool = False, guarded: bool = False) -> Part:
    """The order, where nobody changed it since it was read, and neither what `leased` and `guarded` stand for."""
    assert not (leased and guarded), "no call of a merchant begins a charge"
    new = outcome.order
    values = (
        new.merchant_id, new.order_id, new.version, new.status, new.captured, new.voided, new.refunded,
        new.fee_returned, new.lapsed, new.card_failures, new.charging, new.charging_since,
        new.transfers + len(outcome.transfers), new.events + len(outcome.events),
        new.authorization_expires_at, new.due_at, new.warned, new.collect_at,
    )  # fmt: skip
    sql = _CHANGED_LEASED if leased else _CHANGED_GUARDED if guarded else _CHANGED_PLAIN
    return Part("changed", sql, values)


_CREATED = """INSERT INTO orders (merchant_id, order_id, token, version, currency, amount, fee, auto_capture,
    created_at, expires_at, status, events, due_at)
    SELECT :1::uuid, :2::uuid, :3::uuid, 1, :4::text, :5::bigint, :6::bigint, :7::boolean,
    :8::timestamptz, :9::timestamptz, :10::text, :11::integer, :12::timestamptz{lease}
    RETURNING merchant_id, order_id"""
_CREATED_PLAIN = _CREATED.format(lease="")
_CREATED_LEASED = _CREATED.format(lease=" WHERE EXISTS (SELECT FROM held)")


def created(order: Order, token: UUID, events: int, *, leased: bool) -> Part:
    """A new order, with as many events as it begins with."""
    values = (
        order.merchant_id, order.order_id, token, order.currency, order.amount, order.fee, order.auto_capture,
        order.created_at, order.expires_at, order.status, events, order.due_at,
    )  # fmt: skip
    return Part("changed", _CREATED_LEASED if leased else _CREATED_PLAIN, values)


def details(reference: str, document: str) -> Part:
    """What never changes about an order."""
    sql = """INSERT INTO order_details (merchant_id, order_id, reference, document)
        SELECT merchant_id, order_id, :1::text, :2::json FROM changed"""
    return Part("details", sql, (reference, document))


def started(start: Start) -> Part:
    """How the checkout was started. The same signed text twice is refused by its unique index."""
    sql = """INSERT INTO sdk_checkouts (merchant_id, order_id, body_hash, origin, display, flow, integration,
        additional) SELECT merchant_id, order_id, :1::bytea, :2::text, :3::text, :4::text, :5::text,
        :6::json FROM changed"""
    additional = None if start.additional is None else encode(start.additional).decode()
    values = (start.body_hash, start.origin, start.display, start.flow, start.integration, additional)
    return Part("started", sql, values)


def plan(outcome: Outcome) -> Part:
    """What the consumer agreed to; a second try after a declined card agrees anew."""
    sql = """INSERT INTO plans (merchant_id, order_id, consumer_id, time_zone, first_day, agreement, agreement_hash,
        agreed_at, payer, browser) SELECT merchant_id, order_id, :1::uuid, :2::text, :3::date, :4::text, :5::text,
        :6::timestamptz, :7::json, :8::bytea
        FROM changed ON CONFLICT (merchant_id, order_id) DO UPDATE SET consumer_id = excluded.consumer_id,
        time_zone = excluded.time_zone, first_day = excluded.first_day, agreement = excluded.agreement,
        agreement_hash = excluded.agreement_hash, agreed_at = excluded.agreed_at,
        payer = excluded.payer, browser = excluded.browser"""
    agreed = outcome.plan
    assert agreed is not None
    values = (
        agreed.consumer_id, agreed.time_zone, agreed.first_day, agreed.agreement, agreed.agreement_hash,
        agreed.agreed_at, _payer(agreed), agreed.browser,
    )  # fmt: skip
    return Part("plan", sql, values)


def _payer(agreed: Plan) -> str:
    shipping = {} if agreed.shipping is None else {"shipping": asdict(agreed.shipping)}
    return json.dumps({**asdict(agreed.payer), "phone": agreed.phone, **shipping})


def charge(outcome: Outcome) -> Part:
    """A charge before the rail is called."""
    sql = """INSERT INTO charges (merchant_id, order_id, charge_id, installment, amount, card_token, card_brand,
        card_last4, origin, state, created_at) SELECT merchant_id, order_id, :1::uuid, :2::smallint, :3::bigint,
        :4::text, :5::text, :6::text, :8::text, 'pending', :7::timestamptz FROM changed"""
    asked = outcome.charge
    assert asked is not None
    values = (
        asked.charge_id, asked.installment, asked.amount, asked.card_token, asked.card_brand, asked.card_last4,
        outcome.at, asked.origin,
    )  # fmt: skip
    return Part("charge", sql, values)


def charge_settled(outcome: Outcome) -> Part:
    """The rail's answer to a charge."""
    sql = """UPDATE charges c SET state = :2, reason = :3, settled_at = :4 FROM changed
        WHERE c.merchant_id = changed.merchant_id AND c.order_id = changed.order_id AND c.charge_id = :1"""
    settled = outcome.charge_settled
    assert settled is not None
    return Part("charge_settled", sql, (settled.job_id, settled.state, settled.reason, outcome.at))


def movement(outcome: Outcome) -> Part:
    """A capture, void or refund; its key is unique."""
    sql = """INSERT INTO movements (merchant_id, order_id, kind, reference, movement_id, amount, created_at)
        SELECT merchant_id, order_id, :1::text, :2::text, :3::uuid, :4::bigint, :5::timestamptz FROM changed"""
    moved = outcome.movement
    assert moved is not None
    return Part("moved", sql, (moved.kind, moved.reference, moved.movement_id, moved.amount, moved.at))


def installments(outcome: Outcome) -> Part:
    """Installments, new or cut."""
    sql = """INSERT INTO installments (merchant_id, order_id, number, due_on, amount, fee, charge_id, returned,
        charge_at, remind_at, failures) SELECT changed.merchant_id, changed.order_id, i.* FROM changed,
        unnest(:1::smallint[], :2::date[], :3::bigint[], :4::bigint[], :5::uuid[], :6::bigint[], :7::timestamptz[],
        :8::timestamptz[], :9::smallint[]) AS i
        ON CONFLICT (merchant_id, order_id, number) DO UPDATE SET amount = excluded.amount, fee = excluded.fee,
        charge_id = excluded.charge_id, returned = excluded.returned, charge_at = excluded.charge_at,
        remind_at = excluded.remind_at, failures = excluded.failures"""
    items = outcome.installments
    columns = ([i.number for i in items], [i.due_on for i in items], [i.amount for i in items])
    more = ([i.fee for i in items], [i.charge_id for i in items], [i.returned for i in items])
    times = ([i.charge_at for i in items], [i.remind_at for i in items], [i.failures for i in items])
    return Part("installment", sql, (*columns, *more, *times))


def transfers(outcome: Outcome) -> Part:
    """The ledger's rows, numbered on from the order's last."""
    sql = """INSERT INTO transfers (merchant_id, order_id, number, posting, cause, debit, credit, amount, currency,
        created_at) SELECT changed.merchant_id, changed.order_id, :6::integer + t.n, t.posting, t.cause, t.debit,
        t.credit, t.amount, :7::text, :8::timestamptz FROM changed, unnest(:1::text[], :2::uuid[], :3::text[],
        :4::text[], :5::bigint[]) WITH ORDINALITY AS t (posting, cause, debit, credit, amount, n)"""
    rows = outcome.transfers
    columns = ([t.posting for t in rows], [t.cause for t in rows], [t.debit for t in rows])
    more = ([t.credit for t in rows], [t.amount for t in rows])
    values = (*columns, *more, outcome.order.transfers, outcome.order.currency, outcome.at)
    return Part("transfer", sql, values)


def events(happened: Sequence[Event], after: int, at: datetime) -> Part:
    """What happened, numbered on from the order's last."""
    sql = """INSERT INTO events (merchant_id, order_id, sequence, type, operation, amount, reference, success,
        message, created_at) SELECT changed.merchant_id, changed.order_id, :7::integer + e.n, e.type, e.operation,
        e.amount, e.reference, e.success, e.message, :8::timestamptz FROM changed, unnest(:1::text[], :2::text[],
        :3::bigint[], :4::text[], :5::boolean[], :6::text[]) WITH ORDINALITY
        AS e (type, operation, amount, reference, success, message, n) RETURNING merchant_id, order_id, sequence"""
    columns = ([e.type for e in happened], [e.operation for e in happened], [e.amount for e in happened])
    more = ([e.reference for e in happened], [e.success for e in happened], [e.message for e in happened])
    return Part("event", sql, (*columns, *more, after, at))


# What is not in the feed yet; the worker publishes it.
OUTBOX = Part(
    "outboxed",
    "INSERT INTO outbox (merchant_id, order_id, sequence) SELECT merchant_id, order_id, sequence FROM event",
    (),
)


def outbox(outcome: Outcome) -> Part:
    """The events of an outcome, to be published."""
    del outcome
    return OUTBOX


def events_of(outcome: Outcome) -> Part:
    """The events of an outcome."""
    return events(outcome.events, outcome.order.events, outcome.at)


def card_refunds(outcome: Outcome) -> Part:
    """Money that is due back to cards; the rail is asked by the worker."""
    sql = """INSERT INTO card_refunds (merchant_id, order_id, card_refund_id, charge_id, amount, state, created_at,
        try_at) SELECT changed.merchant_id, changed.order_id, r.*, 'pending', :4::timestamptz, :4::timestamptz
        FROM changed, unnest(:1::uuid[], :2::uuid[], :3::bigint[]) AS r"""
    asked = outcome.card_refunds
    columns = ([r.card_refund_id for r in asked], [r.charge_id for r in asked], [r.amount for r in asked])
    return Part("card_refund", sql, (*columns, outcome.at))


def card_refund_settled(outcome: Outcome) -> Part:
    """The rail's answer to a card refund."""
    sql = """UPDATE card_refunds r SET state = :2, reason = :3, settled_at = :4, try_at = NULL, tries = tries + 1
        FROM changed WHERE r.merchant_id = changed.merchant_id AND r.order_id = changed.order_id
        AND r.card_refund_id = :1"""
    settled = outcome.card_refund_settled
    assert settled is not None
    assert settled.state is not JobState.PENDING
    return Part("card_refund_settled", sql, (settled.job_id, settled.state, settled.reason, outcome.at))


def notices(outcome: Outcome) -> Part:
    """What the consumer is told; the worker sends it."""
    sql = """INSERT INTO messages (merchant_id, order_id, message_id, kind, installment, amount, day, try_at, state,
        created_at) SELECT changed.merchant_id, changed.order_id, n.*, 'pending', :7::timestamptz FROM changed,
        unnest(:1::uuid[], :2::text[], :3::smallint[], :4::bigint[], :5::date[], :6::timestamptz[]) AS n"""
    told = outcome.notices
    columns = ([n.notice_id for n in told], [n.kind for n in told], [n.installment for n in told])
    more = ([n.amount for n in told], [n.day for n in told], [n.send_at for n in told])
    return Part("notice", sql, (*columns, *more, outcome.at))


def plan_card(outcome: Outcome) -> Part:
    """The card that pays from now on."""
    sql = """UPDATE plans p SET card_token = :1, card_brand = :2, card_last4 = :3 FROM changed
        WHERE p.merchant_id = changed.merchant_id AND p.order_id = changed.order_id"""
    card = outcome.plan_card
    assert card is not None
    return Part("plan_card", sql, (card.token, card.brand, card.last4))
