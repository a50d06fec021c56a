"""Advanced Approvals: reads what a merchant says about its logged-in customer.

There are ten fields, each with two names. A value that cannot be read is left out and listed. `read_fields` raises no
exception, whatever the merchant sent, so bad data never costs a sale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from cuota.core.risk.facts import FieldValue

LONGEST_TEXT = 100
MOST_COUNTED = 10**9
MOST_CENTS = 10**12
# Systems that do not know a date often send the first day of their calendar. Such a date would look like a very old
# account.
NO_DATE = date(1970, 1, 1)

_YES, _NO = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})
_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,18})(?:\.[0-9]{0,30})?", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIMED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+", re.ASCII)
_MONEY = re.compile(r"(?:usd *)?\$? *([0-9.,]+)(?: *usd)?", re.ASCII | re.IGNORECASE)
_PICKED_UP = ("pickup", "pickedup", "collect", "curbside", "instore", "bopis", "bopus")
_SENT = ("online", "ship", "deliver", "digital", "download", "mail", "courier")
_LEVELS = {"low": 10, "medium": 50, "high": 90}


class _UnreadableError(ValueError):
    """The value is not of the field's type."""


@dataclass(frozen=True, slots=True)
class ApprovalsData:
    """The fields that could be read, the fields that could not, and how many more there were.

    Fields that could be read have their SMI names; the others are as they were sent. A date is stored as days before
    today, an average as cents, a fulfillment as `online`, `pickup` or `other`.
    """

    fields: dict[str, FieldValue]
    unreadable: tuple[str, ...]
    unknown: int


class Field(NamedTuple):
    """One of the ten fields: its name on each interface, and how its value is read."""

    gateway: str
    smi: str
    read: Callable[[object, date], FieldValue]


def read_fields(raw: Mapping[str, object], today: date) -> ApprovalsData:
    """Read whatever the merchant sent. Null and empty text count as absent.

    If one field came under several names, the gateway's name wins if its value can be read, then the SMI's. A different
    value under the other name is listed as unreadable.
    """
    sent: dict[str, list[tuple[int, str, object]]] = {}
    unknown = 0
    for name, value in raw.items():
        field, rank = _known(name)
        if field is None:
            unknown += 1
        elif value is not None and not (isinstance(value, str) and not value.strip()):
            sent.setdefault(field.smi, []).append((rank, name, value))
    fields: dict[str, FieldValue] = {}
    unreadable: list[str] = []
    for field in FIELDS:
        for _, name, value in sorted(sent.get(field.smi, ()), key=lambda each: each[:2]):
            try:
                found = field.read(value, today)
            except _UnreadableError:
                unreadable.append(name)
                continue
            if fields.setdefault(field.smi, found) != found:
                unreadable.append(name)
    return ApprovalsData(fields, tuple(unreadable), unknown)


def risk_level(assessment: str) -> int | None:
    """Return the merchant's own assessment as a number from 0 (no risk) to 100.

    The words low, medium and high are accepted.
    """
    text = assessment.strip().casefold().removesuffix("risk").strip()
    if text in _LEVELS:
        return _LEVELS[text]
    if not _NUMBER.fullmatch(text):
        return None
    level = Decimal(text.replace(",", ""))
    return int(level.quantize(Decimal(1), ROUND_HALF_UP)) if level <= 100 else None


def _known(name: object) -> tuple[Field | None, int]:
    """Return the field that a name means, and the rank of the name.

    The ranks: the gateway's name, the gateway's name with other capitals, the SMI's name, the SMI's name with other
    capitals.
    """
    if not isinstance(name, str) or not name.isascii():
        return None, 0
    field = _BY_NAME.get(name.lower())
    if field is None:
        return None, 0
    own = field.gateway if name.lower() == field.gateway.lower() else field.smi
    return field, 2 * (own == field.smi) + (name != own)


def _flag(value: object, _today: date) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().casefold() if isinstance(value, str) else str(abs(_number(value)).normalize())
    if text not in _YES | _NO:
        raise _UnreadableError
    return text in _YES


def _days(value: object, today: date) -> int:
    """Return a date as days before today. A time with a zone is converted to its day in UTC, because `today` is in UTC."""
    if not isinstance(value, str):
        raise _UnreadableError
    text = value.strip()
    try:
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
        elif _TIMED.fullmatch(text):
            moment = datetime.fromisoformat(text.upper())
            day = (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()
        else:
            raise _UnreadableError
    except (ValueError, OverflowError):
        raise _UnreadableError from None
    if not NO_DATE < day <= today:
        raise _UnreadableError
    return (today - day).days


def _count(value: object, _today: date) -> int:
    number = _number(value)
    if number != number.to_integral_value() or number > MOST_COUNTED:
        raise _UnreadableError
    return int(number)


def _cents(value: object, _today: date) -> int:
    """Return an average as cents. It may have any number of decimal places, and is rounded to the cent."""
    if isinstance(value, str):
        written = _MONEY.fullmatch(value.strip())
        if written is None:
            raise _UnreadableError
        value = written[1]
    number = _number(value) * 100
    if number > MOST_CENTS:
        raise _UnreadableError
    return int(number.quantize(Decimal(1), ROUND_HALF_UP))


def _assessment(value: object, _today: date) -> str:
    if not isinstance(value, str):
        return f"{_number(value).normalize():f}"
    text = "".join(letter if letter.isprintable() else " " for letter in value)
    text = text.lower().strip()[:LONGEST_TEXT].rstrip()
    if not text:
        raise _UnreadableError
    return text


def _fulfillment(value: object, _today: date) -> str:
    if not isinstance(value, str):
        raise _UnreadableError
    text = "".join(letter for letter in value.casefold() if letter.isalnum())
    # "online, pickup in store" is a pickup: what counts is how the goods are handed over, not how they were ordered.
    if any(word in text for word in _PICKED_UP):
        return "pickup"
    return "online" if any(word in text for word in _SENT) else "other"


def _number(value: object) -> Decimal:
    """Return a number of zero or more, exactly as written. A float is read as it prints."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise _UnreadableError
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value.strip()):
            raise _UnreadableError
        number = Decimal(value.strip().replace(",", ""))
    else:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    # A larger number is meaningless in every field, and arithmetic would round it or fail.
    if not number.is_finite() or number < 0 or number > MOST_CENTS:
        raise _UnreadableError
    return round(number, 10) if int(number.as_tuple().exponent) < -10 else number


FIELDS = (
    Field("customerLoggedIn", "customer_logged_in", _flag),
    Field("customerIsMember", "customer_is_member", _flag),
    Field("merchantRiskAssessment", "merchant_risk_assessment", _assessment),
    Field("sameDevice", "same_device", _flag),
    Field("fulfillmentMethod", "fulfillment_method", _fulfillment),
    Field("accountCreationDate", "account_creation_date", _days),
    Field("lastTransactionDate", "last_transaction_date", _days),
    Field("customerTransactionCount", "customer_transaction_count", _count),
    Field("customerAverageOrderValue", "customer_average_order_value", _cents),
    Field("customerFraudIncidents", "customer_fraud_incidents", _flag),
)
NAMES = tuple(field.smi for field in FIELDS)
_BY_NAME = {name.lower(): field for field in FIELDS for name in (field.gateway, field.smi)}
