"""The card rail to Stripe. docs/card-rails.md explains it, and lists what was tested only with a stand-in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import stripe

from cuota.rails.bounded import SECONDS
from cuota.rails.card.protocol import (
    PROCESSING,
    BadEvent,
    Card,
    CardAnswer,
    CardEvent,
    CardFields,
    CardHolder,
    CardOutcome,
    ChargebackReply,
    ChargeRequest,
    RefundRequest,
    UnknownToken,
    declined,
)
from cuota.rails.card.stripe_calls import (
    PAGE,
    Connections,
    Json,
    SpentKey,
    answered,
    client,
    first_of,
)
from cuota.rails.card.stripe_customers import StripeCustomers
from cuota.rails.card.stripe_declines import ABANDONED, FAILED, error_of, reason_of, refused
from cuota.rails.card.stripe_disputes import answer_dispute
from cuota.rails.card.stripe_events import card_event, card_of
from cuota.rails.card.stripe_fields import card_fields
from cuota.rails.card.stripe_intents import answer_of, ids_of, intent_params
from cuota.rails.card.stripe_listing import earliest_events
from cuota.rails.card.stripe_refunds import refund_once
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

SIGNATURE = "stripe-signature"
SIGNED_WITHIN = 300
MOST_KEYS = 5
# Within this time, the request that made a PaymentIntent may still confirm it.
IN_FLIGHT_SECONDS = 60
assert IN_FLIGHT_SECONDS > SECONDS
_METHOD = re.compile(r"pm_[A-Za-z0-9_]{1,200}", re.ASCII)


class StripeCardRail:
    """Charges cards with Stripe. A card's token is its customer and its PaymentMethod: `cus_.../pm_...`."""

    name = "stripe"

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        del vault, now
        if settings.stripe is None:
            raise ValueError(
                "needs CUOTA_STRIPE_SECRET_KEY, CUOTA_STRIPE_PUBLISHABLE_KEY and CUOTA_STRIPE_WEBHOOK_SECRET"
            )
        self._keys = settings.stripe
        self._connections = Connections()
        self._stripe = client(self._keys, self._connections)
        account = hashlib.sha256(self._keys.publishable.encode()).hexdigest()[:32]
        self._customers = StripeCustomers(self._stripe, books, account)

    async def close(self) -> None:
        """Close the connections to Stripe."""
        await self._connections.close_async()  # type: ignore[no-untyped-call]

    def fields(self) -> CardFields:
        """Return Stripe's script, our script that mounts the Payment Element, and the origins that Stripe documents for a CSP."""
        return card_fields(self._keys)

    async def keep(self, token: str, holder: CardHolder) -> Card:
        """Attach the card to the consumer's customer at Stripe, so that it can be charged later."""
        if not _METHOD.fullmatch(token):
            raise UnknownToken
        customer = await self._customers.of(holder)
        methods = self._stripe.v1.payment_methods
        passed = (stripe.CardError, stripe.InvalidRequestError)
        try:
            attached = await answered(methods.attach_async(token, {"customer": customer}), passed)
        except passed:
            return await self._not_attached(token, customer)
        await answered(methods.update_async(token, {"metadata": ids_of(holder)}))
        return card_of(attached.to_dict(), customer)

    async def _not_attached(self, token: str, customer: str) -> Card:
        """Return a card that Stripe did not attach, if it can still be charged. Raises UnknownToken.

        The card's bank may have declined to store the card. Then the charge is declined too, with the reason. Or the
        card is already attached, by an earlier call whose answer was lost.
        """
        try:
            found = await answered(
                self._stripe.v1.payment_methods.retrieve_async(token), (stripe.InvalidRequestError,)
            )
        except stripe.InvalidRequestError:
            raise UnknownToken from None
        method: Json = found.to_dict()
        if method.get("type") != "card" or method.get("customer") not in {None, customer}:
            raise UnknownToken
        return card_of(method, customer)

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        """Make a PaymentIntent and confirm it, in one request.

        If Stripe itself fails, Stripe repeats that error for a day under the same idempotency key. If no payment was made,
        the next key is used. Every process uses the same keys in the same order, so two processes never charge twice.
        """
        for number in range(1, MOST_KEYS + 1):
            try:
                return await self._create(asked, f"{asked.key}-{number}")
            except SpentKey:
                if await self._find(asked.token, asked.key) is not None:
                    raise
        raise RailUnavailable(f"Stripe failed {MOST_KEYS} times to make this payment")

    async def _create(self, asked: ChargeRequest, idempotency_key: str) -> CardAnswer:
        customer, method = _parts(asked.token)
        intents = self._stripe.v1.payment_intents
        call = intents.create_async(
            intent_params(asked, customer, method), {"idempotency_key": idempotency_key}
        )
        try:
            intent = await answered(call, (stripe.CardError, stripe.InvalidRequestError))
        except stripe.CardError as problem:
            return declined(reason_of(error_of(problem)))
        except stripe.InvalidRequestError as problem:
            return await refused(self._stripe, problem, customer)
        return answer_of(intent.to_dict())

    async def _find(self, token: str, key: UUID) -> Json | None:
        """Find a charge by our own key. Stripe's search lags behind, and its idempotency keys expire; a list is complete."""
        customer, _ = _parts(token)
        listed = self._stripe.v1.payment_intents.list_async(
            {"customer": customer, "limit": PAGE, "expand": ["data.latest_charge"]}
        )
        return await first_of(listed, charge_id=str(key))

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        """Look the charge up in the customer's PaymentIntents."""
        intent = await self._find(asked.token, asked.key)
        return None if intent is None else await self._settled(intent)

    async def _settled(self, intent: Json) -> CardAnswer:
        """Return a PaymentIntent's answer.

        After a failed attempt with the consumer present, Stripe would accept another card for the same PaymentIntent,
        and the return address gives the browser the secret for that. So the PaymentIntent is canceled before it counts
        as a decline. An unconfirmed PaymentIntent is canceled too, because the request that confirms it may still be in
        progress.
        """
        answer = answer_of(intent)
        unconfirmed = intent["status"] == "requires_confirmation"
        if unconfirmed and time.time() - intent["created"] < IN_FLIGHT_SECONDS:
            return PROCESSING
        open_to_the_browser = intent["status"] != "canceled" and intent.get("setup_future_usage")
        if answer.outcome is not CardOutcome.DECLINED or not (unconfirmed or open_to_the_browser):
            return answer
        ended = await self._cancel(intent["id"], FAILED)
        return answer if ended["status"] == "canceled" else answer_of(ended)

    async def _cancel(self, intent_id: str, reason: Any) -> Json:
        """Cancel a PaymentIntent, and return how it ended. Stripe refuses if the PaymentIntent was already paid or canceled."""
        intents = self._stripe.v1.payment_intents
        with contextlib.suppress(stripe.InvalidRequestError):
            call = intents.cancel_async(intent_id, {"cancellation_reason": reason})
            await answered(call, (stripe.InvalidRequestError,))
        ended = await answered(intents.retrieve_async(intent_id, {"expand": ["latest_charge"]}))
        return ended.to_dict()

    async def give_up(self, asked: ChargeRequest) -> CardAnswer:
        """Cancel the PaymentIntent."""
        intent = await self._find(asked.token, asked.key)
        if intent is None:
            return declined("authentication_abandoned")
        if intent["status"] == "requires_action":
            intent = await self._cancel(intent["id"], ABANDONED)
        return await self._settled(intent)

    async def refund(self, asked: RefundRequest) -> CardAnswer:
        """Refund part or all of the charge's PaymentIntent, unless this key was already used."""
        intent = await self._find(asked.token, asked.charge)
        if intent is None or not answer_of(intent).approved:
            return declined("exceeds_charge")
        return await refund_once(self._stripe, asked, intent)

    async def answer_chargeback(self, reply: ChargebackReply) -> None:
        """Send evidence to Stripe, or accept the dispute there."""
        await answer_dispute(self._stripe, reply)

    async def forget(self, consumer_id: UUID) -> None:
        """Delete the consumer's customer at Stripe, with name, e-mail address and cards."""
        await self._customers.forget(consumer_id)

    async def read_event(self, headers: Mapping[str, str], body: bytes) -> CardEvent | None:
        """Verify Stripe's signature, and read the event."""
        try:
            stripe.WebhookSignature.verify_header(
                body, headers.get(SIGNATURE), self._keys.webhook_secret, SIGNED_WITHIN
            )
            event = json.loads(body)
        except (stripe.SignatureVerificationError, ValueError):
            raise BadEvent("Stripe did not sign this message, or signed it too long ago") from None
        try:
            return await card_event(event, self._metadata_of)
        except (KeyError, TypeError, AttributeError, OverflowError):
            raise BadEvent("Stripe's event has another form than documented") from None

    async def _metadata_of(self, intent_id: str) -> Mapping[str, str]:
        """Return a PaymentIntent's metadata. Empty if Stripe has no such payment in this account."""
        try:
            found = await answered(
                self._stripe.v1.payment_intents.retrieve_async(intent_id), (stripe.InvalidRequestError,)
            )
        except stripe.InvalidRequestError:
            return {}
        metadata: Mapping[str, str] = found.to_dict().get("metadata") or {}
        return metadata

    async def events_since(self, since: datetime) -> Sequence[CardEvent]:
        """List the earliest of Stripe's events since that time. Stripe keeps events for 30 days."""
        return await earliest_events(self._stripe, since, self._metadata_of)


def _parts(token: str) -> tuple[str, str]:
    """Return the customer and the PaymentMethod of a stored token."""
    customer, slash, method = token.partition("/")
    if not slash or not customer.startswith("cus_") or not _METHOD.fullmatch(method):
        raise RailUnavailable("the stored token is not one of Stripe's")
    return customer, method
