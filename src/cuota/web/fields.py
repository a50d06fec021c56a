"""Reads and checks the fields of a body. All failures are collected, so that one refusal can list them all.

A prefill field only fills in the checkout's form. In the lenient profile an invalid prefill field is left out, and named in
the warnings instead of the errors.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cuota.core import money
from cuota.core.refusal import Code, FieldError, Refused


class WrongField(ValueError):
    """A field is invalid. `code` is stable; the message says what the field must be and follows the field's name."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def wrong_type(what: str) -> WrongField:
    """Return the failure of a field that has the wrong JSON type. `what` names the right type."""
    return WrongField("wrong_type", f"must be {what}")


Check = Callable[[Any], Any]
# The most characters that one character has in the NFD form.
_LONGEST_DECOMPOSITION = 4
_TOO_MUCH = 10**money.MAX_DIGITS
# Evidence may have texts of 14 MiB before their length is checked. A loop over each character would take a second.
_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f]")
_CONTROLS_IN_LINES = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class Reader:
    """Reads fields and collects failures by dotted path. `lenient`: the merchant has the lenient profile."""

    lenient: bool
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[FieldError] = field(default_factory=list)

    def read(
        self,
        source: dict[str, Any],
        path: str,
        check: Check,
        *,
        required: bool = False,
        prefill: bool = False,
    ) -> Any:
        """Return the checked value of one field; None if the field is absent, null or invalid.

        `source` is the object that holds the field. The last part of `path` is the field's name in it.
        """
        value = source.get(path[path.rfind(".") + 1 :])
        if value is None:
            if required:
                self.fail(path, WrongField("required", "is required"), prefill=prefill)
            return None
        try:
            return check(value)
        except WrongField as wrong:
            self.fail(path, wrong, prefill=prefill)
            return None

    def fail(self, path: str, wrong: WrongField, *, prefill: bool = False) -> None:
        """Record a failure: a warning for a prefill field in the lenient profile, otherwise an error."""
        kind = self.warnings if prefill and self.lenient else self.errors
        kind.append(FieldError(path, wrong.code, str(wrong)))

    def finish(self) -> list[dict[str, str]]:
        """Return the warnings. If there are errors, raise Refused with all of them instead.

        The code is malformed_request if a field has the wrong JSON type, otherwise validation_failed.
        """
        if self.errors:
            types = any(error.code == "wrong_type" for error in self.errors)
            code = Code.MALFORMED_REQUEST if types else Code.VALIDATION_FAILED
            listed = "; ".join(f"{error.field} {error.message}" for error in self.errors[:5])
            more = f"; and {len(self.errors) - 5} more" if len(self.errors) > 5 else ""
            raise Refused(code, f"{listed}{more}.", errors=tuple(self.errors))
        return [{"field": w.field, "code": w.code, "message": w.message} for w in self.warnings]


def as_object(value: Any) -> dict[str, Any]:
    """Check that a value is a JSON object."""
    if not isinstance(value, dict):
        raise wrong_type("an object")
    return value


def text(
    low: int,
    high: int,
    *,
    lines: bool = False,
    composed: bool = False,
    also: Callable[[str], bool] | None = None,
    must: str = "",
) -> Check:
    """Make a check for a string of `low` to `high` characters without control characters.

    `lines` allows line breaks and tabs. `composed` counts the characters of the NFC form, in which an accented letter is
    one character however it was sent. `also` is a further rule, and `must` its error message.
    """

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type("a string")
        if not value.isprintable():
            refuse_controls(value, lines=lines)
        length = _composed_length(value, high) if composed else len(value)
        if length < low:
            raise WrongField("too_short", f"must have at least {low} characters")
        if length > high:
            raise WrongField("too_long", f"must have at most {high} characters")
        if also is not None and not also(value):
            raise WrongField("invalid", must)
        return value

    return check


def _composed_length(value: str, high: int) -> int:
    # A longer text has more than `high` characters in any form. The time to compose it could grow with the square of its length.
    if value.isascii() or len(value) > high * _LONGEST_DECOMPOSITION:
        return len(value)
    return len(unicodedata.normalize("NFC", value))


def reference(low: int) -> Check:
    """Make a check for a merchant's reference: a string of `low` to 100 characters, or a JSON integer.

    An integer becomes the string of its digits.
    """
    check = text(low, 100)

    def read(value: Any) -> str:
        whole = isinstance(value, int) and not isinstance(value, bool)
        # The JSON reader reads integers with very many digits as decimals without an exponent.
        long = isinstance(value, Decimal) and value.as_tuple().exponent == 0
        checked: str = check(str(value) if whole or long else value)
        return checked

    return read


def refuse_controls(value: str, *, lines: bool = False) -> None:
    """Raise WrongField if a text that is not printable has control characters. `lines` allows line breaks and tabs."""
    if (_CONTROLS_IN_LINES if lines else _CONTROLS).search(value):
        raise WrongField("control_character", "must not contain control characters")


def cents(*, low: int | None = 0) -> Check:
    """Make a check that reads an amount as integer cents and requires at least `low` cents (None: no limit)."""

    def check(value: Any) -> int:
        if isinstance(value, bool | dict | list):
            raise wrong_type("a number, or a string holding a plain decimal such as 123.45")
        try:
            amount = money.cents_of(value)
        except money.BadAmount as problem:
            raise WrongField("invalid", str(problem)) from None
        if low is not None and amount < low:
            raise WrongField("out_of_range", "must be greater than 0" if low == 1 else "must not be negative")
        return amount

    return check


def number(value: Any) -> Decimal | int:
    """Check a number of at most 18 digits, in JSON or as text, and keep its exact value."""
    if type(value) is int:
        if abs(value) < _TOO_MUCH:
            return value
        raise WrongField("invalid", "must have at most 18 digits")
    if isinstance(value, bool | dict | list):
        raise wrong_type("a number")
    try:
        amount = money.decimal_of(value)
    except money.BadAmount:
        raise WrongField("invalid", "must be a number") from None
    if len(amount.as_tuple().digits) > money.MAX_DIGITS or abs(amount.adjusted()) > money.MAX_DIGITS:
        raise WrongField("invalid", "must have at most 18 digits")
    return amount
