"""Consumers: rules for phone numbers, names and addresses, and the time zone of a state."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from uuid import UUID

from cuota.core.typed_text import typed_text

_US_NUMBER = re.compile(r"[2-9][0-9]{2}[2-9][0-9]{6}", re.ASCII)
_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:[A-Za-z]{2,63}|xn--[A-Za-z0-9-]{2,59})"
)

# The time zone in which most people of each state live. Installments are due on the consumer's calendar day.
_EASTERN = "CT DE DC FL GA IN KY ME MD MA MI NH NJ NY NC OH PA RI SC VT VA WV"
_CENTRAL = "AL AR IL IA KS LA MN MS MO NE ND OK SD TN TX WI"
_MOUNTAIN = "CO ID MT NM UT WY"
_PACIFIC = "CA NV OR WA"
ZONES = {
    **dict.fromkeys(_EASTERN.split(), "America/New_York"),
    **dict.fromkeys(_CENTRAL.split(), "America/Chicago"),
    **dict.fromkeys(_MOUNTAIN.split(), "America/Denver"),
    **dict.fromkeys(_PACIFIC.split(), "America/Los_Angeles"),
    "AZ": "America/Phoenix",
    "AK": "America/Anchorage",
    "HI": "Pacific/Honolulu",
    "PR": "America/Puerto_Rico",
    "VI": "America/St_Thomas",
    "GU": "Pacific/Guam",
    "AS": "Pacific/Pago_Pago",
    "MP": "Pacific/Saipan",
}
DEFAULT_ZONE = "America/New_York"

STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California", "CO": "Colorado",
    "CT": "Connecticut", "DE": "Delaware", "DC": "District of Columbia", "FL": "Florida", "GA": "Georgia",
    "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas",
    "KY": "Kentucky", "LA": "Louisiana", "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts",
    "MI": "Michigan", "MN": "Minnesota", "MS": "Mississippi", "MO": "Missouri", "MT": "Montana",
    "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire", "NJ": "New Jersey", "NM": "New Mexico",
    "NY": "New York", "NC": "North Carolina", "ND": "North Dakota", "OH": "Ohio", "OK": "Oklahoma",
    "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island", "SC": "South Carolina", "SD": "South Dakota",
    "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont", "VA": "Virginia", "WA": "Washington",
    "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming", "PR": "Puerto Rico", "VI": "U.S. Virgin Islands",
    "GU": "Guam", "AS": "American Samoa", "MP": "Northern Mariana Islands",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Address:
    """A US postal address. `state` is its two-letter code, `postcode` five digits."""

    line1: str
    line2: str
    city: str
    state: str
    postcode: str


@dataclass(frozen=True, slots=True)
class ShippingAddress:
    """The recipient and address of an express order."""

    name: str
    address: Address


@dataclass(frozen=True, slots=True)
class Profile:
    """The data of the consumer who pays. It is entered in the checkout, and prefilled from the order or an earlier visit."""

    given_names: str
    surname: str
    email: str
    address: Address

    @property
    def name(self) -> str:
        """The first and last name in one text."""
        return f"{self.given_names} {self.surname}"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A person with a verified phone number. The id is derived from the number (`db/checkout/consumers`)."""

    consumer_id: UUID
    phone: str
    profile: Profile | None


def is_us_number(text: str) -> bool:
    """Return whether the text is ten ASCII digits, with area code and exchange starting with 2 to 9."""
    return _US_NUMBER.fullmatch(text) is not None


def typed_number(text: str) -> str:
    """Reduce a typed US number to its ten digits: remove a leading +1 or 1, and punctuation."""
    digits = re.sub(r"[\s()\[\].+-]", "", text, flags=re.ASCII)
    return digits[1:] if len(digits) == 11 and digits.startswith("1") else digits


def is_name(text: str) -> bool:
    """Check a name by the API's rule: after NFC, Unicode letters with their marks, spaces and dashes, starting with a letter."""
    if text.isascii():  # nearly all names are ASCII, and this check takes a tenth of the time
        return text.replace(" ", "").replace("-", "").isalpha()
    composed = unicodedata.normalize("NFC", text)
    kinds = [unicodedata.category(char)[0] for char in composed if char not in " -"]
    return bool(kinds) and kinds[0] == "L" and all(kind in "LM" for kind in kinds)


def typed_name(text: str) -> str:
    """Normalize a typed name as `typed_text` does. A left quotation mark becomes an apostrophe."""
    return typed_text(text).replace("\N{LEFT SINGLE QUOTATION MARK}", "\N{RIGHT SINGLE QUOTATION MARK}")


# Both kinds of apostrophe, the period, and the joiner characters that some scripts need inside a word.
_IN_NAMES = frozenset(" '.\N{RIGHT SINGLE QUOTATION MARK}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}")


def is_typed_name(text: str) -> bool:
    """Check a name typed in a page: 1 to 50 letters of any script with marks, spaces, dashes, apostrophes and periods.

    At least one character must be a letter. O'Brien, St. John and King Jr. are names. The API's rule is `is_name`.
    """
    composed = unicodedata.normalize("NFC", text)
    kinds = [unicodedata.category(char) for char in composed if char not in _IN_NAMES]
    letters = any(kind.startswith("L") for kind in kinds)
    return len(composed) <= 50 and letters and all(kind[0] in "LM" or kind == "Pd" for kind in kinds)


def is_email(text: str) -> bool:
    """Return whether the text is an e-mail address: ASCII, a domain with a dot, at most 250 characters."""
    local, _, _ = text.partition("@")
    dots = local.startswith(".") or local.endswith(".") or ".." in local
    return len(text) <= 250 and not dots and _EMAIL.fullmatch(text) is not None


# Abbreviations in street addresses.
_SHORT = {
    "street": "st", "avenue": "ave", "av": "ave", "road": "rd", "drive": "dr", "lane": "ln", "boulevard": "blvd", "court": "ct",
    "place": "pl", "square": "sq", "terrace": "ter", "highway": "hwy", "parkway": "pkwy", "apartment": "apt", "suite": "ste",
    "north": "n", "south": "s", "east": "e", "west": "w",
}  # fmt: skip


def address_key(address: Address) -> str:
    """Return one text for all spellings of an address: case, punctuation and common abbreviations do not matter."""
    text = unicodedata.normalize("NFKC", f"{address.line1} {address.line2}").casefold()
    words = re.findall(r"\w+", text)
    return " ".join([*(_SHORT.get(word, word) for word in words), address.postcode])


def zone_of(state: str | None) -> str:
    """Return the time zone of a state's code, or Eastern time for an unknown code."""
    return ZONES.get((state or "").upper(), DEFAULT_ZONE)
