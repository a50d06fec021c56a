"""Payments at the stand-in. localstripe stores them, and this module adds what Stripe documents and localstripe
lacks."""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from support.stripe import cards
from support.stripe.cards import TestCard, test_card
from support.stripe.ledger import Ledger
from support.stripe.upstream import Json, Pairs, Upstream

Answer = tuple[int, Json]
# Parameters that localstripe refuses or ignores.
_ADDED = ("return_url", "off_session", "setup_future_usage", "confirm", "expand", "payment_method_types")
# Stripe's least amount in US dollars, in cents (docs.stripe.com/currencies).
LEAST = 50
_DECLINES = [
    ("type", "card"), ("card[number]", "4000000000000341"), ("card[exp_month]", "12"), ("card[exp_year]", "2035"), ("card[cvc]", "123"),
]  # fmt: skip


def missing(param: str) -> Answer:
    """Stripe's error for a parameter that names an object that does not exist."""
    error = {
        "type": "invalid_request_error",
        "code": "resource_missing",
        "param": param,
        "message": f"No such {param}",
    }
    return 400, {"error": error}


@dataclass
class Added:
    """What the stand-in stores about a payment in addition to localstripe."""

    method: str
    setup: str | None
    return_url: str | None
    error: Json | None = None
    status: str | None = None
    canceled_because: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Intents:
    """PaymentIntents and refunds."""

    def __init__(self, upstream: Upstream, ledger: Ledger) -> None:
        self._upstream = upstream
        self._ledger = ledger
        self.url = ""
        self.added: dict[str, Added] = {}
        self._by_customer: dict[str, list[str]] = defaultdict(list)
        self.by_charge: dict[str, list[str]] = defaultdict(list)
        self._confirmed: set[str] = set()
        self._declines: str | None = None

    async def create(self, pairs: Pairs) -> Answer:
        """POST /v1/payment_intents, always confirmed at once."""
        given = dict(pairs)
        method, customer = given["payment_method"], given["customer"]
        if customer not in self._ledger.customers:
            return missing("customer")
        number = self._ledger.numbers.get(method)
        if number is None or self._ledger.attached.get(method, customer) != customer:
            return missing("payment_method")
        if int(given["amount"]) < LEAST:
            return 400, {
                "error": {"type": "invalid_request_error", "code": "amount_too_small", "param": "amount"}
            }
        off_session = given.get("off_session") == "true"
        if off_session and "setup_future_usage" in given:
            return 400, {"error": {"type": "invalid_request_error", "param": "setup_future_usage"}}
        card = test_card(number)
        confirms = card.confirms == "always" or (card.confirms == "once" and method not in self._confirmed)
        kept = [(name, text) for name, text in pairs if name.partition("[")[0] not in _ADDED]
        if card.code and not confirms:
            kept = [pair for pair in kept if pair[0] != "payment_method"]
            kept.append(("payment_method", await self._declining()))
        status, made = await self._upstream.call("POST", "/v1/payment_intents", kept)
        if status != 200:
            return status, made
        self.added[made["id"]] = Added(method, given.get("setup_future_usage"), given.get("return_url"))
        self._by_customer[customer].append(made["id"])
        self.by_charge[given.get("metadata[charge_id]", "")].append(made["id"])
        return await self._confirm(made, card, confirms=confirms, off_session=off_session)

    async def _declining(self) -> str:
        """Return a PaymentMethod that localstripe declines when it is charged. localstripe declines only one card
        number."""
        if self._declines is None:
            _, made = await self._upstream.call("POST", "/v1/payment_methods", _DECLINES)
            self._declines = made["id"]
        return str(self._declines)

    async def _confirm(self, made: Json, card: TestCard, *, confirms: bool, off_session: bool) -> Answer:
        intent_id, added = made["id"], self.added[made["id"]]
        if confirms and off_session:
            return await self._failed(intent_id, cards.AUTHENTICATION_REQUIRED, "requires_payment_method")
        status, said = await self._upstream.call("POST", f"/v1/payment_intents/{intent_id}/confirm")
        if status == 402:
            return await self._failed(intent_id, cards.error(card))
        if status == 200 and said["status"] == "requires_action" and not confirms:
            await self._authenticate(said, passed=True)
        if added.setup and not confirms:
            self._ledger.attached.setdefault(added.method, made["customer"])
        return await self.read(intent_id)

    async def _failed(self, intent_id: str, error: Json, status: str | None = None) -> Answer:
        """Return Stripe's error for a declined payment. It contains the PaymentIntent."""
        added = self.added[intent_id]
        added.error, added.status = {**error, "payment_method": {"id": added.method}}, status
        _, intent = await self.read(intent_id)
        if status is not None:
            self._ledger.happened("payment_intent.payment_failed", intent)
        return 402, {"error": {**error, "payment_intent": intent}}

    async def _authenticate(self, intent: Json, *, passed: bool) -> int:
        path = f"/v1/payment_intents/{intent['id']}/_authenticate"
        secret = ("client_secret", intent["client_secret"])
        status, _ = await self._upstream.call("POST", path, [secret, ("success", str(passed).lower())])
        return status

    async def confirm_by_consumer(self, intent_id: str, *, passed: bool) -> Json | None:
        """Confirm or refuse a payment on the page of the consumer's bank. Return None if the payment no longer waits
        for that."""
        added = self.added[intent_id]
        async with added.lock:
            intent = await self._upstream.get(f"/v1/payment_intents/{intent_id}")
            if intent["status"] != "requires_action":
                return None
            status = await self._authenticate(intent, passed=passed)
            if status == 402:
                added.error = cards.error(test_card(self._ledger.numbers[added.method]))
            elif not passed:
                added.error = cards.AUTHENTICATION_FAILED
                _, failed = await self.read(intent_id)
                self._ledger.happened("payment_intent.payment_failed", failed)
            elif added.setup:
                self._confirmed.add(added.method)
        _, ended = await self.read(intent_id)
        return ended

    async def cancel(self, intent_id: str, pairs: Pairs) -> Answer:
        """POST /v1/payment_intents/{id}/cancel."""
        added = self.added[intent_id]
        async with added.lock:
            status, said = await self._upstream.call("POST", f"/v1/payment_intents/{intent_id}/cancel")
            if status != 200:
                said["error"]["code"] = "payment_intent_unexpected_state"
                return status, said
            # Stripe clears last_payment_error if a PaymentIntent is updated for any reason.
            added.error = added.status = None
            added.canceled_because = dict(pairs).get("cancellation_reason")
        _, intent = await self.read(intent_id)
        self._ledger.happened("payment_intent.canceled", intent)
        return 200, intent

    async def read(self, intent_id: str) -> Answer:
        """GET /v1/payment_intents/{id}, with what the documentation says and localstripe lacks."""
        status, found = await self._upstream.call("GET", f"/v1/payment_intents/{intent_id}")
        added = self.added.get(intent_id)
        if status != 200 or added is None:
            return missing("intent")
        intent = copy.deepcopy(found)
        intent["status"] = added.status or intent["status"]
        intent["setup_future_usage"], intent["payment_method"] = added.setup, added.method
        intent["cancellation_reason"], intent["last_payment_error"] = added.canceled_because, added.error
        if intent["next_action"]:
            url = {"url": f"{self.url}/bank/{intent_id}", "return_url": added.return_url}
            intent["next_action"] = {"type": "redirect_to_url", "redirect_to_url": url}
        if isinstance(intent.get("latest_charge"), dict):
            self._as_documented(intent["latest_charge"], intent, added)
        return 200, intent

    def _as_documented(self, charge: Json, intent: Json, added: Added) -> None:
        charge["metadata"], charge["payment_method"] = intent["metadata"], added.method
        reference = {"network_transaction_id": f"ntx{charge['id'][3:]}"}
        charge["payment_method_details"] = {"type": "card", "card": reference}
        if charge["status"] == "failed":
            error = cards.error(test_card(self._ledger.numbers[added.method]))
            reason = error.get("decline_code", error["code"])
            charge["failure_code"], charge["outcome"] = (
                error["code"],
                {"type": "issuer_declined", "reason": reason},
            )

    async def listed(self, given: dict[str, str]) -> Answer:
        """GET /v1/payment_intents?customer=..., newest first."""
        customer = given["customer"]
        if customer not in self._ledger.customers | self._ledger.deleted:
            return missing("customer")
        ids = self._by_customer[customer][::-1]
        start = ids.index(given["starting_after"]) + 1 if "starting_after" in given else 0
        limit = int(given.get("limit", "10"))
        page = [(await self.read(each))[1] for each in ids[start : start + limit]]
        more = start + limit < len(ids)
        return 200, {"object": "list", "url": "/v1/payment_intents", "has_more": more, "data": page}

    async def refund(self, pairs: Pairs) -> Answer:
        """POST /v1/refunds. localstripe would refund more than was charged."""
        given: dict[str, Any] = dict(pairs)
        added = self.added.get(given["payment_intent"])
        if added is None:
            return missing("payment_intent")
        async with added.lock:
            intent = await self._upstream.get(f"/v1/payment_intents/{given['payment_intent']}")
            charge = intent["latest_charge"]
            left = charge["amount"] - charge["amount_refunded"]
            if int(given["amount"]) > left:
                code = {} if left else {"code": "charge_already_refunded"}
                return 400, {"error": {"type": "invalid_request_error", "param": "amount", **code}}
            status, made = await self._upstream.call("POST", "/v1/refunds", pairs)
        if status == 200:
            self._ledger.happened("refund.created", made)
        return status, made

    async def books(self, charge_id: str) -> tuple[int, int]:
        """Return the cents taken and given back for one of our charges, in all payments with the charge's id."""
        taken = returned = 0
        for intent_id in self.by_charge[charge_id]:
            intent = await self._upstream.get(f"/v1/payment_intents/{intent_id}")
            if intent["status"] == "succeeded":
                taken += intent["latest_charge"]["amount"]
                returned += intent["latest_charge"]["amount_refunded"]
        return taken, returned
