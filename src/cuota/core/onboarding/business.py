"""A merchant's business: its names, tax number, type and address, and what it sells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from cuota.core.consumer import Address
from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.typed_address import ADDRESS_FIELDS, read_address, read_text

LONGEST_NAME, LONGEST_SELLS, LONGEST_WEBSITE = 120, 500, 200
# The prefixes that the Internal Revenue Service has never assigned ("How EINs are assigned and valid EIN prefixes").
_NO_PREFIX = "00 07 08 09 17 18 19 28 29 49 69 70 78 79 89 96 97"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WEBSITE = re.compile(
    rf"(?:https?://)?(?:{_LABEL}\.)+[A-Za-z]{{2,63}}(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9\-._~/%]*)?",
    re.ASCII | re.IGNORECASE,
)


class BusinessType(StrEnum):
    """The legal form of a business."""

    SOLE_PROPRIETOR = "sole_proprietor"
    PARTNERSHIP = "partnership"
    LLC = "llc"
    CORPORATION = "corporation"
    NONPROFIT = "nonprofit"
    GOVERNMENT = "government"


BUSINESS_WORDS = {
    BusinessType.SOLE_PROPRIETOR: "Sole proprietor",
    BusinessType.PARTNERSHIP: "Partnership",
    BusinessType.LLC: "Limited liability company (LLC)",
    BusinessType.CORPORATION: "Corporation",
    BusinessType.NONPROFIT: "Nonprofit",
    BusinessType.GOVERNMENT: "Government or public body",
}


@dataclass(frozen=True, slots=True)
class Business:
    """A business. `trading_name` is empty if it equals the legal name; `ein` has the form 12-3456789."""

    legal_name: str
    trading_name: str
    ein: str
    type: BusinessType
    website: str
    address: Address
    sells: str

    @property
    def masked_ein(self) -> str:
        """The last four digits of the EIN. A sole proprietor's EIN is personal data, so the other digits are hidden."""
        return f"••-•••{self.ein[-4:]}"


FIELDS = ("legal_name", "trading_name", "ein", "type", "website", *ADDRESS_FIELDS, "sells")


def read_business(form: dict[str, str]) -> Business:
    """Read a business from the fields of a form. Raises BadOnboarding with an error for each wrong field."""
    errors: dict[str, str] = {}
    names = f"Use at most {LONGEST_NAME} characters."
    legal = _words(
        form, "legal_name", 1, f"Enter the name as it is registered. {names}", errors, LONGEST_NAME
    )
    trading = _words(form, "trading_name", 0, names, errors, LONGEST_NAME)
    sells = f"Say in a sentence what the business sells, in at most {LONGEST_SELLS} characters."
    business = Business(
        legal_name=legal,
        trading_name="" if trading == legal else trading,
        ein=_read_ein(form.get("ein", ""), errors),
        type=_read_type(form.get("type", ""), errors),
        website=_read_website(form.get("website", ""), errors),
        address=read_address(form, "the business", errors),
        sells=_words(form, "sells", 3, sells, errors, LONGEST_SELLS),
    )
    if errors:
        # The summary on the page lists the errors in the order of the fields.
        raise BadOnboarding({name: errors[name] for name in FIELDS if name in errors})
    return business


def _words(form: dict[str, str], name: str, low: int, wrong: str, errors: dict[str, str], most: int) -> str:
    """Return a text of several words. A line break counts as a space."""
    return read_text({name: " ".join(form.get(name, "").split())}, name, low, wrong, errors, most=most)


def _read_ein(typed: str, errors: dict[str, str]) -> str:
    digits = re.sub(r"[\s-]", "", typed)
    if not re.fullmatch(r"[0-9]{9}", digits, re.ASCII):
        errors["ein"] = "Enter the nine digits of the Employer Identification Number, such as 12-3456789."
    elif digits[:2] in _NO_PREFIX.split():
        errors["ein"] = (
            f"No EIN begins with {digits[:2]}. Check each digit, for example on the letter of the IRS (CP 575)."
        )
    return f"{digits[:2]}-{digits[2:]}"


def _read_type(typed: str, errors: dict[str, str]) -> BusinessType:
    try:
        return BusinessType(typed)
    except ValueError:
        errors["type"] = "Choose what kind of business it is."
        return BusinessType.LLC


def _read_website(typed: str, errors: dict[str, str]) -> str:
    if len(typed) > LONGEST_WEBSITE or not _WEBSITE.fullmatch(typed):
        errors["website"] = "Enter the address of the website, such as https://shop.example."
    return typed if "://" in typed else f"https://{typed}"
