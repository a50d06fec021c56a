"""Makes refunds at Stripe: each only once, and never more than was charged."""

from __future__ import annotations

import stripe

from cuota.rails.card.protocol import APPROVED, PROCESSING, CardAnswer, RefundRequest, declined
from cuota.rails.card.stripe_calls import PAGE, Json, all_of, answered
from cuota.rails.card.stripe_intents import ids_of
from cuota.rails.unavailable import RailUnavailable

_REFUNDED = {"succeeded": APPROVED, "pending": PROCESSING, "requires_action": PROCESSING}


async def refund_once(client: stripe.StripeClient, asked: RefundRequest, intent: Json) -> CardAnswer:
    """Refund part or all of a PaymentIntent, unless this key was already used."""
    refunds = await all_of(client.v1.refunds.list_async({"payment_intent": intent["id"], "limit": PAGE}))
    for earlier in refunds:
        if (earlier.get("metadata") or {}).get("card_refund_id") == str(asked.key):
            return _answer(earlier)
    returned = sum(each["amount"] for each in refunds if each["status"] in _REFUNDED)
    if returned + asked.amount > intent["amount"]:
        return declined("exceeds_charge")
    metadata = {**ids_of(asked), "charge_id": str(asked.charge), "card_refund_id": str(asked.key)}
    call = client.v1.refunds.create_async(
        {"payment_intent": intent["id"], "amount": asked.amount, "metadata": metadata},
        {"idempotency_key": str(asked.key)},
    )
    try:
        made = await answered(call, (stripe.InvalidRequestError,))
    except stripe.InvalidRequestError as problem:
        # Another refund was made after the list was read.
        if problem.code == "charge_already_refunded" or problem.param == "amount":
            return declined("exceeds_charge")
        if problem.code == "charge_disputed":
            return declined("charge_disputed")
        raise RailUnavailable(f"Stripe: InvalidRequestError, {problem.code}") from None
    return _answer(made.to_dict())


def _answer(refund: Json) -> CardAnswer:
    return _REFUNDED.get(refund["status"], declined("refund_failed"))
