"""Translates Stripe's codes of a declined payment into ours, which `core/plan/declines.py` explains.

Sources: docs.stripe.com/declines/codes (decline_code), docs.stripe.com/declines/card (advice_code) and
docs.stripe.com/declines/network-codes (network_decline_code). A code that is not in the table keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import stripe

from cuota.core.plan.declines import AUTHENTICATION_REQUIRED, is_hard
from cuota.rails.card.protocol import CardAnswer, declined
from cuota.rails.card.stripe_calls import answered
from cuota.rails.unavailable import RailUnavailable

AUTHENTICATION_FAILED = "authentication_failed"
AUTHENTICATION_ABANDONED = "authentication_abandoned"
DECLINED = "card_declined"
_REASONS = {
    "authentication_required": AUTHENTICATION_REQUIRED,
    "authentication_not_handled": AUTHENTICATION_REQUIRED,
    "payment_intent_authentication_failure": AUTHENTICATION_FAILED,
    "expired_card": "card_expired",
    "lost_card": "card_lost",
    "stolen_card": "card_stolen",
    "pickup_card": "card_restricted",
    "restricted_card": "card_restricted",
    "invalid_account": "invalid_account",
    "new_account_information_available": "invalid_account",
    "incorrect_number": "card_unknown",
    "invalid_number": "card_unknown",
    "do_not_try_again": "do_not_try_again",
    "revocation_of_authorization": "revocation_of_authorization",
    "revocation_of_all_authorizations": "revocation_of_authorization",
    "stop_payment_order": "revocation_of_authorization",
    "transaction_not_allowed": "transaction_not_allowed",
    "generic_decline": DECLINED,
    # Stripe asks merchants not to show these two reasons to consumers.
    "fraudulent": DECLINED,
    "merchant_blacklist": DECLINED,
}
# Visa's codes if the consumer has stopped payments to this merchant, or has closed the account.
_NETWORK_REASONS = {
    "R0": "revocation_of_authorization",
    "R1": "revocation_of_authorization",
    "R3": "revocation_of_authorization",
    "46": "card_closed",
}


def reason_of(error: Mapping[str, Any]) -> str:
    """Return our code for an error of Stripe: the `error` of an answer, or a payment's `last_payment_error`."""
    stripes = error.get("decline_code") or error.get("code") or DECLINED
    reason = _REASONS.get(stripes, stripes)
    if is_hard(reason):
        return reason
    if network := _NETWORK_REASONS.get(error.get("network_decline_code") or ""):
        return network
    return "do_not_try_again" if error.get("advice_code") == "do_not_try_again" else reason


def reason_of_intent(intent: Mapping[str, Any]) -> str:
    """Return our code for a PaymentIntent that did not succeed.

    Stripe clears `last_payment_error` when a PaymentIntent changes later, so the failed charge and the reason of its
    cancellation are read too.
    """
    if error := intent.get("last_payment_error"):
        return reason_of(error)
    charge = intent.get("latest_charge")
    if isinstance(charge, Mapping) and charge.get("status") == "failed":
        outcome = charge.get("outcome") or {}
        return reason_of(
            {**outcome, "code": charge.get("failure_code"), "decline_code": outcome.get("reason")}
        )
    failed = intent.get("cancellation_reason") == FAILED
    return AUTHENTICATION_FAILED if failed else AUTHENTICATION_ABANDONED


# The reason with which we cancel a PaymentIntent at Stripe, after a failed attempt or when the consumer did not come
# back.
FAILED = "requested_by_customer"
ABANDONED = "abandoned"


def error_of(problem: stripe.CardError) -> Mapping[str, Any]:
    """Return the `error` of Stripe's answer."""
    body = problem.json_body
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {"code": problem.code}


async def refused(
    client: stripe.StripeClient, problem: stripe.InvalidRequestError, customer: str
) -> CardAnswer:
    """Return a decline if Stripe can never make this charge. Otherwise raise RailUnavailable."""
    if problem.code in {"amount_too_small", "amount_too_large"}:
        return declined(problem.code)
    if problem.code == "resource_missing" and problem.param in {"payment_method", "customer"}:
        # The card was removed at Stripe. If Stripe has never had this customer, the keys belong to another account.
        found = await answered(client.v1.customers.retrieve_async(customer))
        if problem.param == "payment_method" or found.to_dict().get("deleted"):
            return declined("card_unknown")
    raise RailUnavailable(f"Stripe: InvalidRequestError, {problem.code}")
