"""The values that prefill the checkout's forms.

Personal data from the order is shown only after the consumer verified the phone number that the order names, with a
one-time code. A value that the form would reject is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request

from cuota.core.area_codes import is_us_mobile
from cuota.core.consumer import Address, Profile, typed_name
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.take_step import Problem, known_consumer
from cuota.web.pages.checkout.details import read_details, read_shipping
from cuota.web.service import service_of

_ADDRESS_PARTS = ("addressLine1", "addressLine2", "city", "state", "postcode")


def order_phone(checkout: Checkout) -> str | None:
    """Return the US mobile number that the order names, or None.

    A page must never show the whole number, because anybody with the link can see the page.
    """
    named = checkout.document.consumer.get("phoneNumber")
    return named if isinstance(named, str) and is_us_mobile(named) else None


def _proved(checkout: Checkout) -> bool:
    """Return whether this browser verified the phone number that the order names."""
    return checkout.verified and order_phone(checkout) in {checkout.session.phone} - {None}


def phone_values(checkout: Checkout) -> dict[str, str]:
    """Return the value of the phone form: the number that was typed in this browser before."""
    typed = checkout.session.phone
    return {"phone": typed} if typed and typed != order_phone(checkout) else {}


async def details_values(request: Request, checkout: Checkout) -> dict[str, str]:
    """Return the values of the details form: typed in this browser, from an earlier checkout, or from the order."""
    profile = checkout.session.profile
    if profile is None:
        consumer = await known_consumer(service_of(request).context, checkout)
        profile = consumer.profile if consumer else None
    if profile is not None:
        return {**_names(profile), **_place(profile.address)}
    if not _proved(checkout):
        return {}
    named, place = checkout.document.consumer, checkout.document.address
    values = {
        "given_names": typed_name(named.get("givenNames") or ""),
        "surname": typed_name(named.get("surname") or ""),
        "email": named.get("email") or "",
        **_place(_address(place)),
    }
    return _readable(values, read_details)


def shipping_values(checkout: Checkout) -> dict[str, str]:
    """Return the values of the shipping form: typed in this browser, from the order, or from the billing address."""
    session, given = checkout.session, checkout.document.shipping
    assert session.profile is not None
    name, place = session.profile.name, session.profile.address
    if session.shipping is not None:
        name, place = session.shipping.name, session.shipping.address
    elif given.get("addressLine1") and _proved(checkout):
        place = _address(given)
    return _readable({"recipient": name, **_place(place)}, read_shipping)


def _names(profile: Profile) -> dict[str, str]:
    return {"given_names": profile.given_names, "surname": profile.surname, "email": profile.email}


def _address(given: dict[str, str | None]) -> Address:
    address = Address(*(given.get(part) or "" for part in _ADDRESS_PARTS))
    return replace(address, state=address.state.upper())


def _place(place: Address) -> dict[str, str]:
    return {
        "address_line1": place.line1,
        "address_line2": place.line2,
        "city": place.city,
        "state": place.state,
        "postcode": place.postcode,
    }


def _readable(values: dict[str, str], read: Callable[[dict[str, str]], object]) -> dict[str, str]:
    """Return only the values that `read`, the form's reader, accepts."""
    try:
        read(values)
    except Problem as problem:
        return {name: value for name, value in values.items() if name not in problem.errors}
    return values
