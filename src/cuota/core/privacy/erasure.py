"""What erasing a consumer means: what is taken out of an order, what stays and why, and what has to be settled first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from cuota.core import money

# Parts of an order's document that name its consumer, or are free text of the merchant's in which anything may stand: the
# function blank_orders in the database leaves these in their place.
BLANK: Mapping[str, object] = {
    "consumer": None,
    "billing": None,
    "shipping": None,
    "description": None,
    "metadata": {},
}
# (what stays, why). Told by `cuota consumer erase`, and listed in docs/retention.md.
STAYS = (
    (
        "amounts, dates and states of orders, plans, charges, refunds and events; the ledger",
        "accounting and tax records; without them nobody can check the books",
    ),
    (
        "the card's brand, its last four digits and the card network's token",
        "a later refund goes back to the card that paid",
    ),
    (
        "risk decisions: numbers and reasons",
        "a creditor has to show for 25 months why it decided as it did (12 CFR 1002.12); they name nobody",
    ),
    ("the hash of the payment agreement", "whoever has a copy of the agreement can still prove it"),
    ("the items of an order, without a name", "they say what the amounts were for"),
    (
        "keyed hashes of number, card, address and device, for 60 days at the most",
        "they stop card testing; they cannot be read",
    ),
    (
        "backups made before today",
        "they go when you delete them; after restoring one, erase the same people again",
    ),
)


@dataclass(frozen=True, slots=True)
class OpenObligations:
    """What is still open about one order of a consumer. Cents."""

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


def still_has(document: Mapping[str, Any]) -> list[str]:
    """The names of personal parts that a blanked document must not have."""
    return [name for name, empty in BLANK.items() if document.get(name, empty) not in (empty, None)]


def reasons_against(found: Sequence[OpenObligations], *, refunds_settled: bool) -> list[str]:
    """Why the consumer cannot be erased yet, a sentence each; empty where nothing stands against it.

    `refunds_settled`: what cards would not take back was paid to the consumer another way.
    """
    return [reason for each in found for reason in _reasons(each, refunds_settled=refunds_settled)]


def _reasons(order: OpenObligations, *, refunds_settled: bool) -> list[str]:
    def shown(cents: int) -> str:
        return money.shown(cents, order.currency)

    where, reasons = f"{order.merchant}, reference {order.reference}", []
    if order.charging:
        reasons.append(f"{where}: a card is being charged at this moment. Try again in a minute.")
    if order.unpaid:
        until = f", the last payment on {order.last_due}" if order.last_due else ""
        reasons.append(f"{where}: {shown(order.unpaid)} of the plan is still owed{until}.")
    if order.uncaptured:
        ends = f" until {order.authorization_ends:%Y-%m-%d}" if order.authorization_ends else ""
        reasons.append(
            f"{where}: the merchant may still ship and capture {shown(order.uncaptured)}{ends}, and needs the address."
        )
    if order.returning:
        reasons.append(f"{where}: {shown(order.returning)} is on its way back to the card.")
    if order.refused and not refunds_settled:
        reasons.append(
            f"{where}: a card would not take {shown(order.refused)} back. Pay it another way, then add --refunds-settled."
        )
    if order.letter_waits:
        reasons.append(f"{where}: the letter that says why it was declined is not sent yet.")
    return reasons
