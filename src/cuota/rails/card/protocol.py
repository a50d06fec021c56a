"""The interface between the service and a card processor. docs/card-rails.md explains how to write a rail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.plan.card import Card
from cuota.core.plan.card_event import CardEvent, CardEventKind

__all__ = [
    "APPROVED",
    "PROCESSING",
    "BadEvent",
    "Card",
    "CardAnswer",
    "CardEvent",
    "CardEventKind",
    "CardFields",
    "CardHolder",
    "CardOutcome",
    "CardRail",
    "ChargeRequest",
    "ChargebackReply",
    "RefundRequest",
    "UnknownToken",
    "declined",
    "requires_action",
]


@dataclass(frozen=True, slots=True)
class CardFields:
    """The values with which a page shows the processor's own card fields inside our form.

    `scripts` are loaded in this order; the last one defines `window.cardFields`. `options` are public values for that script,
    such as a publishable key. `sources` are the origins that the page's Content-Security-Policy allows, by directive, such as
    `{"frame-src": ("https://js.example.com",)}`.
    """

    scripts: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CardHolder:
    """Who entered a card, and the order whose plan the card pays. A rail may send this to its processor."""

    consumer_id: UUID
    name: str
    email: str
    merchant_id: UUID
    order_id: UUID


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """A charge. `key` is our own reference for it: a repeated call with the same key acts only once.

    `amount` is in cents. `return_url` is set if the consumer is at the page now: the processor may ask for a confirmation
    there (3-D Secure), and then sends the browser back to this address. It is None for a charge that the schedule starts.
    """

    key: UUID
    token: str
    amount: int
    currency: str
    merchant_id: UUID
    order_id: UUID
    return_url: str | None = None


@dataclass(frozen=True, slots=True)
class RefundRequest:
    """Money to send back, in cents, from the charge with the key `charge` to the card that paid it. `key` works as in a charge."""

    key: UUID
    charge: UUID
    token: str
    amount: int
    merchant_id: UUID
    order_id: UUID


@dataclass(frozen=True, slots=True)
class ChargebackReply:
    """The merchant's answer to a chargeback.

    `reference` is the processor's id of the dispute; `key` is our id of this answer.

    Without `accepts`, the text and the files are evidence, which goes to the card's bank.
    """

    key: UUID
    reference: str
    token: str
    text: str
    files: tuple[EvidenceFile, ...] = ()
    accepts: bool = False


class CardOutcome(StrEnum):
    """The result of a charge or a refund."""

    APPROVED = "approved"
    DECLINED = "declined"
    REQUIRES_ACTION = (
        "requires_action"  # the consumer must confirm the charge with the card's bank (3-D Secure)
    )
    PROCESSING = "processing"  # the processor answers later


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """The processor's answer.

    `reason` is the code of a decline; `core/plan/declines.py` has the codes, and what each means for later charges.
    `action_url` is where the consumer confirms a charge that requires it. `network_reference` is the card network's
    identifier of the transaction, if the processor returns it.
    """

    outcome: CardOutcome
    reason: str | None = None
    action_url: str | None = None
    network_reference: str | None = None

    @property
    def approved(self) -> bool:
        """Return whether the money moved."""
        return self.outcome is CardOutcome.APPROVED

    @property
    def final(self) -> bool:
        """Return whether the answer is final: approved or declined."""
        return self.outcome in {CardOutcome.APPROVED, CardOutcome.DECLINED}


APPROVED = CardAnswer(CardOutcome.APPROVED)
PROCESSING = CardAnswer(CardOutcome.PROCESSING)


def declined(reason: str) -> CardAnswer:
    """Return a decline with this code."""
    return CardAnswer(CardOutcome.DECLINED, reason)


def requires_action(url: str) -> CardAnswer:
    """Return the answer for a charge that the consumer must confirm at this address."""
    return CardAnswer(CardOutcome.REQUIRES_ACTION, action_url=url)


class BadEvent(Exception):
    """A message to the events endpoint that the processor did not sign, or that cannot be read."""


class CardRail(Protocol):
    """The interface of the class in CUOTA_CARD_RAIL. Amounts are cents. Each `async` call may raise RailUnavailable.

    The constructor takes what `rails/load.py` gives to every rail: `(settings, books, vault, now)`. `name` is stored with each
    card and charge (2 to 32 of a-z, 0-9 and _), so that running plans keep their rail after an operator has chosen another one.
    A rail may also have `async def close(self)`, which is called when the process ends.
    """

    name: str

    def fields(self) -> CardFields:
        """Return the values that the page needs for the processor's own fields."""
        ...

    async def keep(self, token: str, holder: CardHolder) -> Card:
        """Set up the card for later charges, from the token that the fields gave to the browser. Raises UnknownToken."""
        ...

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        """Charge the card."""
        ...

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        """Look up an earlier charge of any age by its key in the processor's records.

        Return None if it never arrived there.
        """
        ...

    async def give_up(self, asked: ChargeRequest) -> CardAnswer:
        """Cancel a charge that waits for the consumer, and return how the charge ended: it may have been paid by then."""
        ...

    async def refund(self, asked: RefundRequest) -> CardAnswer:
        """Refund part or all of a charge to the card. Look up an earlier refund with the same key before sending one."""
        ...

    async def answer_chargeback(self, reply: ChargebackReply) -> None:
        """Send evidence, or accept the chargeback. A repeated call with the same key acts only once.

        It does nothing if the dispute accepts no more answers, because it is closed or was answered before.
        """
        ...

    async def read_event(self, headers: Mapping[str, str], body: bytes) -> CardEvent | None:
        """Verify and read a message from the processor. Return None if the service does not need it. Raises BadEvent.

        The names in `headers` are in lower case.
        """
        ...

    async def events_since(self, since: datetime) -> Sequence[CardEvent]:
        """Return the events since that time, oldest first, because some may never have been delivered.

        If there are too many for one call, return the oldest ones, at least one of them later than `since`: the service then asks from the
        last of them on, and ends when no event is later.
        """
        ...

    async def forget(self, consumer_id: UUID) -> None:
        """Delete the processor's data about an erased consumer. The cards cannot be charged any more; refunds still work.

        The service repeats the call until it returns without an error, perhaps after the data was already deleted.
        """
        ...


class UnknownToken(Exception):
    """The browser's token is not one of the processor's, was used already, or has expired: the card must be entered again."""
