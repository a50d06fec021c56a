"""The stand-in for Stripe, as the conformance suite uses it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

import httpx

from cuota.db.pool import Pool
from cuota.rails.card.protocol import Card, CardHolder, ChargeRequest
from cuota.rails.card.stripe import StripeCardRail
from support.rails.parts import rail_parts
from support.rails.processor import Bench, DisputeInBooks, Kind, Message, a_holder
from support.stripe.ledger import Json
from support.stripe.stand_in import StandIn, enter_card, signed

_NUMBERS: dict[Kind, str] = {
    "pays": "4242424242424242",
    "no_funds": "4000000000009995",
    "lost": "4000000000009987",
    "action": "4000002760003184",
    "action_declined": "4000008260003178",
    # The test opens the dispute itself, although Stripe's test card for disputes is disputed at once.
    "disputed": "4242424242424242",
}


class StripeProcessor:
    """A rail to the stand-in. Each instance acts as a separate process, with its own connections."""

    def __init__(self, pool: Pool, stand_in: StandIn) -> None:
        self.stand_in = stand_in
        self.rail = StripeCardRail(*rail_parts(pool, stripe=stand_in.stripe_keys))

    async def browser_token(self, kind: Kind) -> str:
        return await enter_card(self.stand_in, _NUMBERS[kind])

    async def ready(self, kind: Kind, holder: CardHolder) -> Card:
        return await self.rail.keep(await self.browser_token(kind), holder)

    async def confirm(self, action_url: str, *, passed: bool) -> bool:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            answer = await http.post(action_url, content=f"passed={'yes' if passed else 'no'}")
        return answer.status_code == 303

    async def books(self, charge: ChargeRequest) -> tuple[int, int]:
        return await self.stand_in.intents.books(str(charge.key))

    def lost_answer(self) -> AbstractContextManager[None]:
        return self.stand_in.faults.planned(lambda method: "answer" if method == "POST" else None)

    def lost_request(self) -> AbstractContextManager[None]:
        return self.stand_in.faults.planned(lambda _method: "request")

    async def event(self, charge: ChargeRequest, kind: str = "payment_intent.succeeded") -> Json:
        """Return an event about a charge."""
        found = (await self.stand_in.events({"limit": "100000"}))["data"]
        (event,) = [
            each
            for each in found
            if each["type"] == kind and each["data"]["object"]["metadata"].get("charge_id") == str(charge.key)
        ]
        return dict(event)

    async def message(self, charge: ChargeRequest) -> Message:
        return signed(await self.event(charge))

    async def old_message(self, charge: ChargeRequest) -> Message | None:
        return signed(await self.event(charge), at=int(time.time()) - 301)

    async def dispute(self, charge: ChargeRequest) -> None:
        paid = (await self.event(charge))["data"]["object"]
        self.stand_in.disputes.open(paid)

    async def dispute_in_books(self, reference: str) -> DisputeInBooks:
        found = self.stand_in.disputes.disputes[reference]
        evidence = dict(found["evidence"])
        assert found["evidence_details"]["submission_count"] <= 1
        text = evidence.pop("uncategorized_text", None)
        return DisputeInBooks(text, len(evidence), accepted=found["status"] == "lost")

    async def close(self) -> None:
        """Close the connections."""
        await self.rail.close()


async def a_bench(processor: StripeProcessor, number: str = "4242424242424242") -> Bench:
    """A consumer with a card that the rail keeps."""
    holder = a_holder()
    return Bench(await processor.rail.keep(await enter_card(processor.stand_in, number), holder), holder)
