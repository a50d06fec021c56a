"""Reads the forms for the consumer's details and the shipping address. Each invalid field gets an error message."""

from __future__ import annotations

import re

from cuota.core.consumer import (
    STATES,
    Address,
    Profile,
    ShippingAddress,
    is_email,
    is_typed_name,
    typed_name,
)
from cuota.core.wire.card_text import masked
from cuota.flows.checkout.take_step import Problem

FIELDS = (
    "recipient", "given_names", "surname", "email", "address_line1", "address_line2", "city", "state", "postcode",
)  # fmt: skip


def read_details(form: dict[str, str]) -> Profile:
    """Read the consumer's details from a form. Raises Problem with an error for each invalid field."""
    errors: dict[str, str] = {}
    address = _address(form, "your billing address", errors)
    profile = Profile(
        given_names=_name(form, "given_names", "first", errors),
        surname=_name(form, "surname", "last", errors),
        email=form.get("email", ""),
        address=address,
    )
    if not is_email(profile.email):
        errors["email"] = "Enter an e-mail address such as name@example.com."
    _raise(errors)
    return profile


def read_shipping(form: dict[str, str]) -> ShippingAddress:
    """Read the shipping address of an express order. Raises Problem with an error for each invalid field."""
    errors: dict[str, str] = {}
    name = _text(form, "recipient", 2, "Enter the name of the person who receives it.", errors, most=101)
    shipping = ShippingAddress(name, _address(form, "the shipping address", errors))
    _raise(errors)
    return shipping


def _raise(errors: dict[str, str]) -> None:
    if errors:
        # The summary on the page lists the errors in the order of the fields.
        raise Problem({name: errors[name] for name in FIELDS if name in errors})


def _address(form: dict[str, str], place: str, errors: dict[str, str]) -> Address:
    zip_code = re.fullmatch(r"([0-9]{5})(-?[0-9]{4})?", form.get("postcode", ""), re.ASCII)
    address = Address(
        line1=_text(form, "address_line1", 3, f"Enter the street and number of {place}.", errors),
        line2=_text(form, "address_line2", 0, "Use at most 50 characters.", errors),
        city=_text(form, "city", 2, f"Enter the city of {place}.", errors),
        state=form.get("state", ""),
        postcode=zip_code[1] if zip_code else "",
    )
    if address.state not in STATES:
        errors["state"] = f"Choose the state of {place}."
    if not zip_code:
        errors["postcode"] = f"Enter the five digits of {place.split(maxsplit=1)[0]} ZIP code."
    return address


def _text(
    form: dict[str, str], name: str, low: int, wrong: str, errors: dict[str, str], *, most: int = 50
) -> str:
    value = form.get(name, "")
    if not low <= len(value) <= most or not value.isprintable():
        errors[name] = wrong
    # The value will be stored, so mask a card number that was typed into the wrong field.
    return masked(value)


def _name(form: dict[str, str], name: str, which: str, errors: dict[str, str]) -> str:
    value = typed_name(form.get(name, ""))
    if not value:
        errors[name] = f"Enter your {which} name."
    elif not is_typed_name(value):
        errors[name] = (
            f"Write your {which} name in at most 50 letters, with spaces, dashes, apostrophes and periods as needed."
        )
    return value
