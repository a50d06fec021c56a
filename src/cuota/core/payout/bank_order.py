"""The data that a bank needs to pay a merchant: the payment order, and the company that orders it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Credit:
    """One payment to one merchant. The amount is in cents; `order_number` is unique among all payments of this installation."""

    payout_id: UUID
    order_number: int
    name: str
    routing: str
    account: str
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class Originator:
    """The operator's company and its own bank account, as the bank knows them.

    `company_id` has at most ten characters and is assigned by the bank (often 1 followed by the tax number). `routing` and
    `account` are the account that pays.
    """

    company: str
    company_id: str
    bank: str
    routing: str
    account: str


class BadCredit(ValueError):
    """The payment does not fit into a file of this format. The text says why."""


def plain(text: str, length: int) -> str:
    """Return the text in ASCII, without control characters, cut to this length. Accents are dropped; other characters become `?`.

    The result is never empty, because ISO 20022 allows no empty name.
    """
    spread = unicodedata.normalize("NFKD", text)
    kept = (mark if mark.isascii() else "?" for mark in spread if not unicodedata.combining(mark))
    return "".join(mark if mark.isprintable() else " " for mark in kept)[:length] or "?"
