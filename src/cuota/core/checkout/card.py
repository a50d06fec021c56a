"""Reads a card that a consumer typed. The card goes to the card rail and is never stored, logged or shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

_BRANDS = (
    ("visa", re.compile(r"4"), (13, 16, 19)),
    ("mastercard", re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    ("amex", re.compile(r"3[47]"), (15,)),
    ("discover", re.compile(r"6011|64[4-9]|65"), (16,)),
)
_NAMES = {"visa": "Visa", "mastercard": "Mastercard", "amex": "American Express", "discover": "Discover"}


def card_brand(brand: str) -> str:
    """Return the brand's display name, such as `Visa`."""
    return _NAMES.get(brand, "Card")


def card_name(brand: str, last4: str) -> str:
    """Return the card's display name, such as `Visa ending 4242`."""
    return f"{card_brand(brand)} ending {last4}"


NO_NUMBER = "Enter the number of your card."
WRONG_NUMBER = "Check the card number: a digit seems to be wrong or missing."
WRONG_EXPIRY = "Enter the expiration date as month and year, such as 09/28."
EXPIRED = "This card has expired. Use another card."
_WRONG_CVC = "Enter the {length} digits of the security code."


def cvc_length(brand: str | None) -> int:
    """Return how many digits the brand's security code has."""
    return 4 if brand == "amex" else 3


def card_rules() -> list[tuple[str, tuple[int, ...], str]]:
    """Return the rules with which the page checks a card number.

    A rule has the prefix (a regular expression), the lengths, and the error for a wrong security code. For a number of an unknown brand, the error is `wrong_cvc(None)`.
    """
    known = [(prefix.pattern, lengths, name) for name, prefix, lengths in _BRANDS]
    return [(prefix, lengths, wrong_cvc(name)) for prefix, lengths, name in known]


def wrong_cvc(brand: str | None) -> str:
    """Return the error for an invalid security code."""
    return _WRONG_CVC.format(length=cvc_length(brand))


@dataclass(frozen=True, slots=True)
class CardEntry:
    """A card's number, expiration date and security code. `repr` shows none of them."""

    number: str = field(repr=False)
    expiry_month: int = field(repr=False)
    expiry_year: int = field(repr=False)
    cvc: str = field(repr=False)
    brand: str

    @property
    def last4(self) -> str:
        """The last four digits, which may be stored."""
        return self.number[-4:]


class BadCard(Exception):
    """The typed data is not a valid card. `errors` has one text for the consumer for each wrong field."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("not a card")
        self.errors = errors


def passes_luhn(number: str) -> bool:
    """Return whether the check digit is right. It detects mistyped numbers."""
    digits = [int(char) for char in reversed(number)]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def read_card(number: str, expiry: str, cvc: str, today: date) -> CardEntry:
    """Read the three fields as typed. Raises BadCard, which names every wrong field."""
    errors = {}
    digits = re.sub(r"[\s-]", "", number)
    brand = _brand(digits)
    if not digits:
        errors["card_number"] = NO_NUMBER
    elif not re.fullmatch(r"[0-9]{12,19}", digits, re.ASCII) or brand is None or not passes_luhn(digits):
        errors["card_number"] = WRONG_NUMBER
    month, year = _expiry(expiry)
    if not month:
        errors["card_expiry"] = WRONG_EXPIRY
    elif (year, month) < (today.year, today.month):
        errors["card_expiry"] = EXPIRED
    if not re.fullmatch(rf"[0-9]{{{cvc_length(brand)}}}", cvc.strip(), re.ASCII):
        errors["card_cvc"] = wrong_cvc(brand)
    if errors or brand is None:
        raise BadCard(errors)
    return CardEntry(digits, month, year, cvc.strip(), brand)


def _brand(digits: str) -> str | None:
    for name, prefix, lengths in _BRANDS:
        if prefix.match(digits) and len(digits) in lengths:
            return name
    return None


def _expiry(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(0?[1-9]|1[0-2])\s*[/ -]?\s*(?:20)?([0-9]{2})\s*", text, re.ASCII)
    return (int(found[1]), 2000 + int(found[2])) if found else (0, 0)
