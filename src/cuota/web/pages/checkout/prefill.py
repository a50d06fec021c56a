"""What a form is filled in with before anybody has typed.

Personal data of the order appears only to whoever proved, by a code, the very phone number that the order names. A value
that the page itself would refuse is left out: it never stands in a person's way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request

from cuota.core.consumer import Address, Profile, is_us_number, typed_name
from cuota.flows.checkout.take_step import Checkout, Problem, known_consumer
from cuota.web.pages.checkout.details import read_details, read_shipping
from cuota.web.service import service_of

_ADDRESS_PARTS = ("addressLine1", "addressLine2", "city", "state", "postcode")


def order_phone(checkout: Checkout) -> str | None:
    """The US number that the order names, if it names one. Never shown whole: whoever has the link sees this page."""
    named = checkout.document.consumer.get("phoneNumber")
    return named if isinstance(named, str) and is_us_number(named) else None


def _proved(checkout: Checkout) -> bool:
    """Whether this browser proved the number that the order names."""
    return checkout.verified and order_phone(checkout) in {checkout.session.phone} - {None}


def phone_values(checkout: Checkout) -> dict[str, str]:
    """The number that this very browser typed before."""
    typed = checkout.session.phone
    return {"phone": typed} if typed and typed != order_phone(checkout) else {}


async def details_values(request: Request, checkout: Checkout) -> dict[str, str]:
    """What is known of who pays: typed here, from an earlier visit, or from the order."""
    profile = checkout.session.profile
    if profile is None:
        known = await known_consumer(service_of(request).context, checkout)
        profile = known.profile if known else None
    if profile is not None:
        return {**_names(profile), **_place(profile.address)}
    if not _proved(checkout):
        return {}
    consumer, place = checkout.document.consumer, checkout.document.address
    given = {
        "given_names": typed_name(consumer.get("givenNames") or ""),
        "surname": typed_name(consumer.get("surname") or ""),
        "email": consumer.get("email") or "",
        **_place(_address(place)),
    }
    return _readable(given, read_details)


def shipping_values(checkout: Checkout) -> dict[str, str]:
    """Where it is sent: typed before, what the shop said, or the billing address. The consumer looks at it either way."""
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
    """The values that the form's own reader takes."""
    try:
        read(values)
    except Problem as problem:
        return {name: value for name, value in values.items() if name not in problem.errors}
    return values
