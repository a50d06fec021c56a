"""Translates Stripe's events. Events about objects that this service did not make at Stripe are ignored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cuota.rails.card.protocol import Card, CardEvent, CardEventKind

# Reads the metadata of a PaymentIntent: a dispute and a refund from the dashboard name only the payment.
MetadataOf = Callable[[str], Awaitable[Mapping[str, str]]]
TYPES = {
    "payment_intent.succeeded": CardEventKind.CHARGE_CHANGED,
    "payment_intent.payment_failed": CardEventKind.CHARGE_CHANGED,
    "payment_intent.processing": CardEventKind.CHARGE_CHANGED,
    "payment_intent.canceled": CardEventKind.CHARGE_CHANGED,
    "refund.created": CardEventKind.REFUNDED_ELSEWHERE,
    "refund.failed": CardEventKind.REFUND_FAILED,
    "payment_method.automatically_updated": CardEventKind.CARD_UPDATED,
    "charge.dispute.created": CardEventKind.DISPUTE_OPENED,
    "charge.dispute.updated": CardEventKind.DISPUTE_CHANGED,
    "charge.dispute.closed": CardEventKind.DISPUTE_CLOSED,
}


def card_of(method: Mapping[str, Any], customer: str) -> Card:
    """Return the data of a PaymentMethod that we may store."""
    card = method["card"]
    return Card(f"{customer}/{method['id']}", card["brand"], card["last4"], card.get("fingerprint") or "")


async def card_event(event: Mapping[str, Any], metadata_of: MetadataOf) -> CardEvent | None:
    """Return an event of Stripe as our event.

    Return None if the service does not need it, or if the payment is not ours.
    """
    kind = TYPES.get(event["type"])
    if kind is None:
        return None
    thing = event["data"]["object"]
    metadata: Mapping[str, str] = thing.get("metadata") or {}
    if kind is CardEventKind.REFUNDED_ELSEWHERE and "card_refund_id" in metadata:
        return None
    if "order_id" not in metadata and isinstance(thing.get("payment_intent"), str):
        refund = {name: text for name, text in metadata.items() if name == "card_refund_id"}
        metadata = {**await metadata_of(thing["payment_intent"]), **refund}
    merchant_id, order_id = _uuid(metadata, "merchant_id"), _uuid(metadata, "order_id")
    if merchant_id is None or order_id is None:
        return None
    paid = kind not in {CardEventKind.CHARGE_CHANGED, CardEventKind.CARD_UPDATED}
    renewed = kind is CardEventKind.CARD_UPDATED and thing.get("customer")
    return CardEvent(
        event["id"], kind, datetime.fromtimestamp(event["created"], UTC), merchant_id, order_id,
        charge_id=_uuid(metadata, "charge_id"),
        refund_id=_uuid(metadata, "card_refund_id"),
        amount=thing["amount"] if paid else None,
        reason=thing.get("failure_reason") or thing.get("reason") if paid else None,
        reference=thing["id"] if paid else None,
        status=thing.get("status") if paid else None,
        respond_by=_respond_by(thing) if paid else None,
        card=card_of(thing, thing["customer"]) if renewed else None,
    )  # fmt: skip


def _respond_by(thing: Mapping[str, Any]) -> datetime | None:
    due = (thing.get("evidence_details") or {}).get("due_by")
    return None if due is None else datetime.fromtimestamp(due, UTC)


def _uuid(metadata: Mapping[str, str], name: str) -> UUID | None:
    try:
        return UUID(metadata[name])
    except (KeyError, ValueError):
        return None
