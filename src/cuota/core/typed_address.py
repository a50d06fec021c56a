"""Reads a US postal address from the fields of a form."""

from __future__ import annotations

import re

from cuota.core.consumer import STATES, Address
from cuota.core.typed_text import typed_digits, typed_text
from cuota.core.wire.card_text import masked

ADDRESS_FIELDS = ("address_line1", "address_line2", "city", "state", "postcode")
_PARTS = {
    "address_line1": "The street address",
    "address_line2": "The apartment, suite or floor",
    "city": "The city",
    "recipient": "The name",
}


def read_address(form: dict[str, str], place: str, errors: dict[str, str]) -> Address:
    """Return the address. Add an error for each wrong field. `place` names the address in these errors, such as `your billing address`."""
    zip_code = re.fullmatch(r"([0-9]{5})(-?[0-9]{4})?", typed_digits(form.get("postcode", "")), re.ASCII)
    address = Address(
        line1=read_text(form, "address_line1", 3, f"Enter the street and number of {place}.", errors),
        line2=read_text(form, "address_line2", 0, "Use only letters, digits and punctuation.", errors),
        city=read_text(form, "city", 2, f"Enter the city of {place}.", errors),
        state=form.get("state", ""),
        postcode=zip_code[1] if zip_code else "",
    )
    if address.state not in STATES:
        errors["state"] = f"Choose the state of {place}."
    if not zip_code:
        errors["postcode"] = f"Enter the five digits of {place.split(maxsplit=1)[0]} ZIP code."
    return address


def read_text(
    form: dict[str, str], name: str, low: int, wrong: str, errors: dict[str, str], *, most: int = 50
) -> str:
    """Return the text of a field. Add the error `wrong` if it has fewer than `low` or more than `most` printable characters.

    A part of an address with more than `most` characters is not missing, so its error says that it is too long. It names the part,
    because the list of errors shows it without the field.
    """
    value = typed_text(form.get(name, ""))
    if not low <= len(value) <= most or not value.isprintable():
        part = _PARTS.get(name) if len(value) > most else None
        errors[name] = f"{part} can have at most {most} characters." if part else wrong
    # The value will be stored, so mask a card number that was typed into the wrong field.
    return masked(value)
