"""What the conformance suite needs besides a processor's rail: cards, a consumer, lost answers, the processor's own
records."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID, uuid4

from cuota.rails.card.protocol import Card, CardHolder, CardRail, ChargeRequest

BACK = "https://pay.example.test/back"
# The kinds of cards: `no_funds` is a soft decline, `lost` a hard decline. The consumer must confirm each charge of
# `action`. `action_declined` is declined after that confirmation. `disputed` pays, and its bank can take the payment
# back.
Kind = Literal["pays", "no_funds", "lost", "action", "action_declined", "disputed"]
Message = tuple[dict[str, str], bytes]


class Processor(Protocol):
    """A card processor in a test."""

    rail: CardRail

    async def browser_token(self, kind: Kind) -> str:
        """Enter a card in the processor's own fields, and return the token that the browser gets."""
        ...

    async def ready(self, kind: Kind, holder: CardHolder) -> Card:
        """Return a stored card whose next charge ends like this."""
        ...

    async def confirm(self, action_url: str, *, passed: bool) -> bool:
        """Confirm or refuse the charge at the consumer's bank. Return False if the bank says that it is too late."""
        ...

    async def books(self, charge: ChargeRequest) -> tuple[int, int]:
        """Return the cents that the processor took for a charge, and the cents that it gave back."""
        ...

    def lost_answer(self) -> AbstractContextManager[None]:
        """Inside the block, the processor acts on each call, but its answer is lost."""
        ...

    def lost_request(self) -> AbstractContextManager[None]:
        """Inside the block, no call reaches the processor."""
        ...

    async def message(self, charge: ChargeRequest) -> Message:
        """Return the headers and the body of an event that reports a changed charge."""
        ...

    async def old_message(self, charge: ChargeRequest) -> Message | None:
        """Return an event that was signed too long ago, or None if the processor's signatures have no time."""
        ...

    async def dispute(self, charge: ChargeRequest) -> None:
        """Let the card's bank take the payment of a disputed card back."""
        ...

    async def dispute_in_books(self, reference: str) -> DisputeInBooks:
        """Return what the processor has stored of the merchant's answers to a dispute."""
        ...


@dataclass(frozen=True, slots=True)
class DisputeInBooks:
    """One of the merchant's answers to a dispute in the processor's records: the text, and the number of files."""

    text: str | None
    files: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """A stored card of a new consumer, and the requests for it."""

    card: Card
    holder: CardHolder

    def charge(self, amount: int = 12_50, return_url: str | None = None) -> ChargeRequest:
        """Return a charge request with a new key."""
        ids = (self.holder.merchant_id, self.holder.order_id)
        return ChargeRequest(uuid4(), self.card.token, amount, "USD", *ids, return_url)


def a_holder(consumer_id: UUID | None = None) -> CardHolder:
    """A consumer at a new order. Without an id, the consumer is new too."""
    return CardHolder(consumer_id or uuid4(), "Ada Approvetest", "ada@shop.test", uuid4(), uuid4())
