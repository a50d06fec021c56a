"""Translates a charge into a PaymentIntent of Stripe, and a PaymentIntent into our answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuota.rails.card.protocol import (
    APPROVED,
    PROCESSING,
    CardAnswer,
    CardHolder,
    ChargeRequest,
    RefundRequest,
    declined,
    requires_action,
)
from cuota.rails.card.stripe_calls import Json
from cuota.rails.card.stripe_declines import reason_of_intent
from cuota.rails.unavailable import RailUnavailable

# In these states, no money has moved: a failed attempt, an unconfirmed or a canceled PaymentIntent.
_NOT_PAID = frozenset({"requires_payment_method", "requires_confirmation", "canceled"})


def ids_of(asked: ChargeRequest | RefundRequest | CardHolder) -> dict[str, str]:
    """Return the metadata that identifies the order in Stripe's events."""
    return {"merchant_id": str(asked.merchant_id), "order_id": str(asked.order_id)}


def intent_params(asked: ChargeRequest, customer: str, method: str) -> Any:
    """Return the parameters of a PaymentIntent.

    With the consumer present, the payment authorizes the card for later payments. Otherwise the parameters say that the
    consumer is absent.
    """
    params: dict[str, object] = {
        "amount": asked.amount,
        "currency": asked.currency.lower(),
        "customer": customer,
        "payment_method": method,
        "payment_method_types": ["card"],
        "confirm": True,
        "metadata": {**ids_of(asked), "charge_id": str(asked.key)},
        "expand": ["latest_charge"],
    }
    if asked.return_url is None:
        return {**params, "off_session": True}
    return {**params, "setup_future_usage": "off_session", "return_url": asked.return_url}


def answer_of(intent: Json) -> CardAnswer:
    """Return our answer for a PaymentIntent. Raises RailUnavailable for an unclear state."""
    status = intent["status"]
    if status == "succeeded":
        return replace(APPROVED, network_reference=_network_reference(intent))
    if status == "processing":
        return PROCESSING
    if status == "requires_action":
        action = (intent.get("next_action") or {}).get("redirect_to_url") or {}
        if url := action.get("url"):
            return requires_action(url)
    if status in _NOT_PAID:
        return declined(reason_of_intent(intent))
    raise RailUnavailable(f"Stripe: the PaymentIntent is in the state {status}")


def _network_reference(intent: Json) -> str | None:
    charge = intent.get("latest_charge")
    details = charge.get("payment_method_details") if isinstance(charge, dict) else None
    card = (details or {}).get("card") or {}
    reference = card.get("network_transaction_id")
    return reference if isinstance(reference, str) else None
