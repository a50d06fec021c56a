"""The body of an event. It has the same bytes every time, because it is made only of facts that never change."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import UUID

import msgspec

from cuota.core.instant import timestamp
from cuota.core.money import decimal_from
from cuota.core.order.event import FINAL_STATUS, MOVED
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order, Status
from cuota.db.order.documents import decode, encode
from cuota.db.order.orders import OrderRecord
from cuota.db.webhook.events import AnyFacts, EventFacts
from cuota.db.webhook.happened import Happened
from cuota.db.webhook.payout_events import PayoutFacts
from cuota.flows.order.checkout_result import customer_of
from cuota.flows.order.show_order import record
from cuota.flows.webhook.show_dispute_event import dispute_members, return_members
from cuota.flows.webhook.show_payout_event import account_members, payout_members

_EVENT_ID = re.compile(r"evt_([0-9a-f]{32})_([1-9][0-9]{0,8})", re.ASCII)


def event_id(order_id: UUID, sequence: int) -> str:
    """Return the event's id, which is the `webhook-id` of every attempt: `evt_<id>_<sequence>`.

    `order_id` is the id of the order, payout or bank account that the event is about.
    """
    return f"evt_{order_id.hex}_{sequence}"


def parse_event_id(text: str) -> tuple[UUID, int] | None:
    """Return the subject's id and the sequence of an event id, or None if the text is not an event id."""
    found = _EVENT_ID.fullmatch(text)
    return (UUID(found[1]), int(found[2])) if found else None


def event_body(facts: AnyFacts, sequence: int, *, sandbox: bool) -> bytes:
    """Return the body as one flat JSON object."""
    if isinstance(facts, EventFacts):
        return _order_event(facts, sequence, sandbox=sandbox)
    happened = next(event for event in facts.events if event.sequence == sequence)
    about = facts.payout_id if isinstance(facts, PayoutFacts) else facts.account_id
    body: dict[str, object] = {
        "id": event_id(about, sequence),
        "type": happened.type,
        "timestamp": timestamp(happened.at),
        "merchantId": facts.merchant_id,
        "test": sandbox,
        "sequence": sequence,
    }
    if isinstance(facts, PayoutFacts):
        return encode(body | payout_members(facts, happened))
    return encode(body | account_members(facts, happened))


def _order_event(facts: EventFacts, sequence: int, *, sandbox: bool) -> bytes:
    """Return the body of an event of an order. `order` is the record of the order right after this event."""
    earlier = [event for event in facts.events if event.sequence <= sequence]
    happened = earlier[-1]
    then = _as_of(facts.record, earlier)
    order = then.order
    document = decode(then.document)
    body: dict[str, object] = {
        "id": event_id(order.order_id, sequence),
        "type": happened.type,
        "timestamp": timestamp(happened.at),
        "merchantId": order.merchant_id,
        "orderId": order.order_id,
        "merchantReference": facts.reference,
        "currency": order.currency,
        "amount": decimal_from(happened.amount),
        "operation": happened.operation,
        "success": happened.success,
        # The message of a dispute's end is its outcome, which `dispute` shows.
        "message": None if happened.type == "dispute.closed" else happened.message,
        "test": sandbox,
        "sequence": sequence,
        "metadata": document.value["metadata"],
        "order": msgspec.Raw(record(then)),
    }
    if facts.disputes or facts.returns:
        body |= dispute_members(earlier, facts.disputes, facts.chargebacks, then.movements)
        body |= return_members(happened, facts.returns)
    if happened.type == "order.approved":
        # Null if the order was approved by a release that did not store the payer.
        body["customer"] = None if facts.payer is None else customer_of(facts.payer)
    return encode(body)


def _as_of(now: OrderRecord, events: list[Happened]) -> OrderRecord:
    """Return the record after these events, without later ones."""
    kinds = {(MOVED[event.type], event.reference) for event in events if event.type in MOVED}
    movements = tuple(item for item in now.movements if (item.kind, item.reference) in kinds)
    sums = {kind: sum(item.amount for item in movements if item.kind is kind) for kind in MovementKind}
    finals = (FINAL_STATUS[event.type] for event in events if event.type in FINAL_STATUS)
    status = next(finals, Status.CREATED)
    approved = status is Status.APPROVED
    order: Order = replace(
        now.order,
        status=status,
        captured=sums[MovementKind.CAPTURE],
        voided=sums[MovementKind.VOID],
        refunded=sums[MovementKind.REFUND],
        lapsed=any(event.type == "authorization.expired" for event in events),
        authorization_expires_at=now.order.authorization_expires_at if approved else None,
        # A review begins and ends without an event of its own.
        review_by=None,
    )
    return OrderRecord(order, now.token, now.document, movements, now.payer)
