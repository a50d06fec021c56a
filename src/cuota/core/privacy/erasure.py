"""The rules for erasing a consumer: which data is removed, which data stays and why, and what must be settled first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from cuota.core import money

# Parts of an order's document that name its consumer, or that hold free text of the merchant. An erasure replaces each part with
# the value given here; the function blank_orders in the database writes the same values.
BLANK: Mapping[str, object] = {
    "consumer": None,
    "billing": None,
    "shipping": None,
    "description": None,
    "metadata": {},
}
# Pairs of the kept data and the reason. `cuota consumer erase` prints them, and docs/retention.md lists them.
STAYS = (
    (
        "amounts, dates and states of orders, plans, charges, refunds and events; the ledger",
        "accounting and tax records require them, and the ledger cannot be checked without them",
    ),
    (
        "the card's brand, its last four digits and the card network's token",
        "a later refund must go to the card that paid",
    ),
    (
        "risk decisions and reviews: numbers and reason codes",
        "a creditor must keep them for 25 months (12 CFR 1002.12); they do not identify the person",
    ),
    (
        "the hashes of the payment agreement and of its changes",
        "a person who has a copy can still prove what was agreed",
    ),
    (
        "that the number was blocked, by a keyed hash, without the reason",
        "an erasure must not end a block; the number itself cannot be read",
    ),
    ("the items of an order, without a name", "they show what the amounts were for"),
    (
        "keyed hashes of number, card, address and device, for at most 60 days",
        "they help to stop card testing, and cannot be read",
    ),
    (
        "keyed hashes of cards that were declined, for 30 days, or for five years if the bank said never to try the card again",
        "the card networks limit attempts with a card, and the hashes cannot be read",
    ),
    (
        "backups made before today",
        "delete them yourself; after you restore one, erase the same people again",
    ),
)


class Forgotten(Exception):
    """The consumer was erased while they paid. Nothing was charged."""


# A consumer may have thousands of orders.
MOST_REASONS = 20


@dataclass(frozen=True, slots=True)
class OpenObligations:
    """The open obligations of one order of a consumer. Amounts are cents."""

    merchant: str
    reference: str
    currency: str
    charging: bool
    unpaid: int
    last_due: date | None
    uncaptured: int
    authorization_ends: datetime | None
    returning: int
    refused: int
    letter_waits: bool
    open_disputes: int = 0
    review_waits: bool = False


def still_has(document: Mapping[str, Any]) -> list[str]:
    """Return the names of personal parts that are still in a document. After an erasure there must be none."""
    return [name for name, empty in BLANK.items() if document.get(name, empty) not in (empty, None)]


def reasons_against(found: Sequence[OpenObligations], *, refunds_settled: bool) -> list[str]:
    """Return the reasons why the consumer cannot be erased yet, one sentence each. The list is empty if there are none.

    `refunds_settled` confirms that refunds that cards refused were paid to the consumer in another way. After MOST_REASONS, one more
    sentence has the number of the rest: a page shows the list, and an entry of the operator's log contains it.
    """
    reasons = [reason for each in found for reason in _reasons(each, refunds_settled=refunds_settled)]
    more = len(reasons) - MOST_REASONS
    return [*reasons[:MOST_REASONS], *([f"There are {more:,} more reasons like these."] if more > 0 else [])]


def _reasons(order: OpenObligations, *, refunds_settled: bool) -> list[str]:
    def shown(cents: int) -> str:
        return money.shown(cents, order.currency)

    where, reasons = f"{order.merchant}, reference {order.reference}", []
    if order.charging:
        reasons.append(f"{where}: a card is being charged right now. Try again in a minute.")
    if order.unpaid:
        until = f", the last payment on {order.last_due}" if order.last_due else ""
        reasons.append(f"{where}: {shown(order.unpaid)} of the plan is still owed{until}.")
    if order.uncaptured:
        ends = f" until {order.authorization_ends:%Y-%m-%d}" if order.authorization_ends else ""
        reasons.append(
            f"{where}: the merchant may still ship and capture {shown(order.uncaptured)}{ends}, and needs the address."
        )
    if order.returning:
        reasons.append(f"{where}: {shown(order.returning)} is being refunded to the card.")
    if order.refused and not refunds_settled:
        reasons.append(
            f"{where}: a card refused a refund of {shown(order.refused)}. Pay the amount in another way, then add --refunds-settled."
        )
    if order.open_disputes:
        reasons.append(f"{where}: a dispute is open, and its texts and files are needed to decide it.")
    if order.review_waits:
        reasons.append(
            f"{where}: a person looks at the order. Answer the review (cuota review list), or wait until it has ended."
        )
    if order.letter_waits:
        reasons.append(f"{where}: the letter about the declined order is not sent yet.")
    return reasons
