"""Builds the values for the page of one order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from starlette.requests import Request

from cuota.core.dates import day
from cuota.core.desk.role import Action
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order, Status
from cuota.db.desk import audit, webhooks
from cuota.db.desk import orders as listing
from cuota.db.desk.audit import Entry
from cuota.db.order import orders, story
from cuota.db.order.documents import decode
from cuota.db.order.story import Charged, Story
from cuota.web.pages.desk.moved_by import MoveKey, moved_by
from cuota.web.pages.desk.view import common, shown, state_of, when
from cuota.web.pages.desk.visit import PATH, Desk
from cuota.web.pages.desk.webhooks import delivery_row
from cuota.web.pages.items import line_cents, quantity_text
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of

_MOST_ENTRIES = 200
PAYMENT_WORDS = {
    "paid": ("Paid", "done"),
    "scheduled": ("Scheduled", "wait"),
    "overdue": ("Overdue", "bad"),
    "written_off": ("Written off", "bad"),
    "cancelled": ("Canceled", "off"),
}
_MOVES = (
    (MovementKind.CAPTURE, "Capture", Action.CAPTURE),
    (MovementKind.REFUND, "Refund", Action.REFUND),
    (MovementKind.VOID, "Void", Action.VOID),
)


async def order_values(request: Request, desk: Desk, order_id: UUID) -> PageContext | None:
    """Return the values of the page, or None if this merchant has no such order."""
    pool = service_of(request).context.pool
    record = await orders.read_record(pool, desk.merchant_id, order_id)
    found = await story.read(pool, desk.merchant_id, order_id)
    listed = await listing.rows(pool, desk.merchant_id, [order_id])
    if record is None or found is None or not listed:
        return None
    entries: list[Entry] = []
    if desk.may(Action.READ_AUDIT):
        entries = await audit.of_order(pool, desk.merchant_id, order_id, _MOST_ENTRIES + 1)
    deliveries: list[PageContext] = []
    if desk.may(Action.READ_WEBHOOKS):
        deliveries = [
            delivery_row(each) for each in await webhooks.of_order(pool, desk.merchant_id, order_id)
        ]
    order, address = found.order, f"{PATH}/orders/{order_id}"
    sees_callers = desk.may(Action.READ_AUDIT) or desk.may(Action.READ_REQUESTS)
    callers = await moved_by(request, desk, order_id) if sees_callers else {}
    document = decode(record.document).value
    return {
        **common(request, desk, f"Order {found.reference or 'without a reference'}", here=f"{PATH}/orders"),
        "address": address,
        "order_id": str(order_id),
        "state": state_of(order),
        "facts": _facts(order, document, listed[0].payer),
        "money": _money(order),
        "moves": _moves(desk, order, address),
        "plan": [_installment(order, each) for each in found.plan],
        "items": _items(desk, order, document, address),
        "deliveries": deliveries[-webhooks.MOST_OF_ORDER :],
        "most_deliveries": webhooks.MOST_OF_ORDER if len(deliveries) > webhooks.MOST_OF_ORDER else None,
        "requests": f"{PATH}/requests?q={order_id}" if desk.may(Action.READ_REQUESTS) else None,
        "timeline": _timeline(order, found, entries[:_MOST_ENTRIES], callers),
        "most_entries": _MOST_ENTRIES if len(entries) > _MOST_ENTRIES else None,
    }


def amount_left(order: Order, kind: MovementKind) -> int:
    """Return the most that a capture, void or refund could move, in cents."""
    return order.refundable if kind is MovementKind.REFUND else order.capturable


def _moves(desk: Desk, order: Order, address: str) -> list[PageContext]:
    return [
        {"label": label, "address": f"{address}/{kind}", "most": shown(order, amount_left(order, kind))}
        for kind, label, action in _MOVES
        if desk.may(action) and amount_left(order, kind) > 0
    ]


def _facts(order: Order, document: dict[str, Any], payer_text: str | None) -> list[tuple[str, str]]:
    payer = json.loads(payer_text) if payer_text else {}
    sent = document.get("consumer") or {}
    name = " ".join(
        filter(
            None,
            (payer.get("given_names") or sent.get("givenNames"), payer.get("surname") or sent.get("surname")),
        )
    )
    rows = [
        ("Created", when(order.created_at)),
        ("Consumer", name),
        ("E-mail", payer.get("email") or sent.get("email") or ""),
        ("Phone", payer.get("phone") or sent.get("phoneNumber") or ""),
    ]
    if order.capturable and order.authorization_expires_at:
        rows.append(("Capture before", when(order.authorization_expires_at)))
    if order.status is Status.CREATED:
        rows.append(("In checkout until", when(order.expires_at)))
    return [(label, value) for label, value in rows if value]


def _money(order: Order) -> list[tuple[str, str]]:
    rows = [
        ("Order amount", order.amount),
        ("Captured", order.captured),
        ("Refunded", order.refunded),
        ("Voided", order.voided),
    ]
    if order.capturable:
        rows.append(("Can be captured", order.capturable))
    if order.refundable:
        rows.append(("Can be refunded", order.refundable))
    if order.disputed or order.charged_back:
        rows.append(("Withheld for disputes", order.disputed + order.charged_back))
    return [(label, shown(order, cents)) for label, cents in rows if cents or label == "Order amount"]


def _installment(order: Order, each: Any) -> PageContext:
    word, kind = PAYMENT_WORDS[each.state]
    return {
        "number": each.number,
        "due": day(each.due_on, year=True),
        "amount": shown(order, each.total),
        "state": {"word": word, "kind": kind},
        "returned": shown(order, each.returned) if each.returned else None,
    }


def _items(desk: Desk, order: Order, document: dict[str, Any], address: str) -> list[PageContext]:
    """Return the items. An item has the address of its refund while anything can be refunded."""
    items = []
    for number, item in enumerate(document.get("items") or []):
        cents = line_cents(item)
        can = desk.may(Action.REFUND) and (cents or 0) > 0 and order.refundable > 0
        items.append({
            "name": item.get("name") or item.get("description") or item.get("sku") or f"Item {number + 1}",
            "quantity": quantity_text(item),
            "amount": "" if cents is None else shown(order, cents),
            "refund": f"{address}/refund?item={number}" if can else None,
        })  # fmt: skip
    return items


EVENT_WORDS = {
    "order.created": "Order created", "order.approved": "Approved: the consumer agreed to the plan", "order.declined": "Declined",
    "order.rejected": "Declined: outside your range", "order.abandoned": "Abandoned", "authorization.expiring": "The authorization ends soon",
    "authorization.expired": "The authorization ended; the rest was voided",
    "capture.completed": "Captured", "void.completed": "Voided", "refund.completed": "Refunded",
    "capture.rejected": "Capture refused", "void.rejected": "Void refused", "refund.rejected": "Refund refused",
    "dispute.opened": "Dispute opened", "dispute.evidence_due": "Evidence is due", "dispute.submitted": "Evidence sent",
    "dispute.won": "Dispute won", "dispute.lost": "Dispute lost", "dispute.appealed": "Dispute appealed",
    "dispute.closed": "Dispute closed", "return.noticed": "The consumer sent goods back",
}  # fmt: skip
_CHARGE_WORDS = {"succeeded": "paid", "failed": "declined", "pending": "on its way"}


def _timeline(
    order: Order, found: Story, entries: Sequence[Entry], callers: Mapping[MoveKey, str]
) -> list[PageContext]:
    rows = [
        (
            each.at,
            EVENT_WORDS.get(each.type, each.type),
            shown(order, each.amount) if each.amount else "",
            each.message or callers.get((each.type.partition(".")[0], each.reference or ""), ""),
        )
        for each in found.told
    ]
    rows += [
        (each.at, _charge_words(each), shown(order, each.amount), each.reason or "") for each in found.charged
    ]
    rows += [(each.at, f"{each.actor}: {each.action}", "", each.reason) for each in entries]
    rows.sort(key=lambda row: row[0])
    return [{"at": when(at), "what": what, "amount": amount, "more": more} for at, what, amount, more in rows]


def _charge_words(each: Charged) -> str:
    return f"Installment {each.installment}: {_CHARGE_WORDS.get(each.state, each.state)}, card ending in {each.last4}"
