"""What the conformance suite needs of a card processor besides its rail: cards, a consumer, lost answers, its own books."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID, uuid4

from cuota.rails.card.protocol import Card, CardHolder, CardRail, ChargeRequest

BACK = "https://pay.example.test/back"
# no_funds is a soft decline; lost is a hard one. action must be confirmed each time; action_declined is declined after that.
# disputed pays, and the card's bank can take the payment back.
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
        """Answer at the consumer's bank. False if the bank says that it is too late."""
        ...

    async def books(self, charge: ChargeRequest) -> tuple[int, int]:
        """The cents that the processor took for a charge, and the cents that it gave back."""
        ...

    def lost_answer(self) -> AbstractContextManager[None]:
        """Let each call inside reach the processor and act, but lose its answer."""
        ...

    def lost_request(self) -> AbstractContextManager[None]:
        """Let no call inside reach the processor."""
        ...

    async def message(self, charge: ChargeRequest) -> Message:
        """Return headers and body of a message that says that a charge changed."""
        ...

    async def old_message(self, charge: ChargeRequest) -> Message | None:
        """Return a message that was signed too long ago. None if the processor's signatures have no time."""
        ...

    async def dispute(self, charge: ChargeRequest) -> None:
        """Let the card's bank take the payment of a disputed card back."""
        ...

    async def dispute_in_books(self, reference: str) -> DisputeInBooks:
        """Return what the processor has stored of the merchant's answers to a dispute."""
        ...


@dataclass(frozen=True, slots=True)
class DisputeInBooks:
    """The merchant's answers to a dispute, by the processor's books: the text and the number of files that count."""

    text: str | None
    files: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """A stored card of a new consumer, and the requests for it."""

    card: Card
    holder: CardHolder

    def charge(self, amount: int = 12_50, return_url: str | None = None) -> ChargeRequest:
        """Return a request with a key of its own."""
        ids = (self.holder.merchant_id, self.holder.order_id)
        return ChargeRequest(uuid4(), self.card.token, amount, "USD", *ids, return_url)


def a_holder(consumer_id: UUID | None = None) -> CardHolder:
    """A consumer at a new order. Without an id, the consumer is new too."""
    return CardHolder(consumer_id or uuid4(), "Ada Approvetest", "ada@shop.test", uuid4(), uuid4())
