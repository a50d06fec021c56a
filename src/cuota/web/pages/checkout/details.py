"""Reads the forms for the consumer's details and the shipping address. Each invalid field gets an error message."""

from __future__ import annotations

from cuota.core.consumer import (
    Profile,
    ShippingAddress,
    is_email,
    is_typed_name,
    typed_name,
)
from cuota.core.typed_address import ADDRESS_FIELDS, read_address, read_text
from cuota.core.typed_text import typed_text
from cuota.flows.checkout.take_step import Problem

FIELDS = ("recipient", "given_names", "surname", "email", *ADDRESS_FIELDS)


def read_details(form: dict[str, str]) -> Profile:
    """Read the consumer's details from a form. Raises Problem with an error for each invalid field."""
    errors: dict[str, str] = {}
    address = read_address(form, "your billing address", errors)
    profile = Profile(
        given_names=_name(form, "given_names", "first", errors),
        surname=_name(form, "surname", "last", errors),
        email=typed_text(form.get("email", "")),
        address=address,
    )
    if not is_email(profile.email):
        errors["email"] = "Enter an e-mail address such as name@example.com."
    _raise(errors)
    return profile


def read_shipping(form: dict[str, str]) -> ShippingAddress:
    """Read the shipping address of an express order. Raises Problem with an error for each invalid field."""
    errors: dict[str, str] = {}
    name = read_text(
        form, "recipient", 2, "Enter the name of the person who receives the order.", errors, most=101
    )
    shipping = ShippingAddress(name, read_address(form, "the shipping address", errors))
    _raise(errors)
    return shipping


def _raise(errors: dict[str, str]) -> None:
    if errors:
        # The summary on the page lists the errors in the order of the fields.
        raise Problem({name: errors[name] for name in FIELDS if name in errors})


def _name(form: dict[str, str], name: str, which: str, errors: dict[str, str]) -> str:
    value = typed_name(form.get(name, ""))
    if not value:
        errors[name] = f"Enter your {which} name."
    elif not is_typed_name(value):
        errors[name] = (
            f"Write your {which} name in at most 50 letters, with spaces, dashes, apostrophes and periods as needed."
        )
    return value
