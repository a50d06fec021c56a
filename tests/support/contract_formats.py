"""Checks the formats that the OpenAPI document names."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import FormatChecker

FORMATS = FormatChecker(formats=())


@FORMATS.checks("amount", raises=ValueError)
def _amount(value: object) -> bool:
    """Allow at most two decimal places and 18 digits, not counting trailing zeros. Numbers are read as
    decimals, never as floats."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return True
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    return number == number.quantize(Decimal("0.01")) and len(number.normalize().as_tuple().digits) <= 18


@FORMATS.checks("uuid", raises=ValueError)
def _uuid(value: object) -> bool:
    return not isinstance(value, str) or bool(UUID(value))


@FORMATS.checks("date", raises=ValueError)
def _date(value: object) -> bool:
    return not isinstance(value, str) or bool(date.fromisoformat(value))


@FORMATS.checks("date-time", raises=ValueError)
def _date_time(value: object) -> bool:
    return not isinstance(value, str) or ("T" in value and datetime.fromisoformat(value).tzinfo is not None)


@FORMATS.checks("uri", raises=ValueError)
def _uri(value: object) -> bool:
    return not isinstance(value, str) or bool(urlsplit(value).scheme and urlsplit(value).netloc)


@FORMATS.checks("email")
def _email(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value) is not None
