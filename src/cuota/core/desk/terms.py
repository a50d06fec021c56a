"""The search terms that find an order: e-mail address, phone number, name, last four digits of a card, amount.

A term is a kind and a normalized value, such as `name:ana silva`. The database stores only a keyed hash of a term. The merchant's
reference and the order's id are not terms: both have an index of their own.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from cuota.core import money
from cuota.core.consumer import is_us_number, typed_number

_LAST4 = re.compile(r"[0-9]{4}", re.ASCII)
_LONGEST = 200


def terms_of(amount: int, people: Iterable[Mapping[str, Any] | None], cards: Iterable[str]) -> set[str]:
    """Return the terms of an order.

    `amount` is in cents. `people` are JSON objects: what the merchant sent (`givenNames`, `surname`, `phoneNumber`, `email`) and
    what the consumer entered (`given_names`, `surname`, `phone`, `email`). `cards` are the last four digits of each card.
    """
    found = {f"amount:{amount}"} | {f"card:{last4}" for last4 in cards}
    for person in people:
        if person:
            found |= _of_person(person)
    return found


def _of_person(person: Mapping[str, Any]) -> set[str]:
    first = _text(person, "givenNames", "given_names")
    last = _text(person, "surname")
    names = {_plain(f"{first} {last}"), _plain(first), _plain(last)} - {""}
    found = {f"name:{name}" for name in names}
    if email := _text(person, "email").strip().lower():
        found.add(f"email:{email[:_LONGEST]}")
    if phone := _phone(_text(person, "phone", "phoneNumber")):
        found.add(f"phone:{phone}")
    return found


def _text(person: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := person.get(name), str) and value), "")


def _phone(typed: str) -> str:
    number = typed_number(typed)
    return number if is_us_number(number) else ""


def _plain(name: str) -> str:
    """Return a name in lower case, without accents and with single spaces: José  Núñez is found as `jose nunez`."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(bare.split())[:_LONGEST]


def asked_terms(typed: str) -> tuple[str, ...]:
    """Return the terms that a typed text may mean. `4242` may be a card and the amount 4242.00."""
    text = typed.strip()[:_LONGEST]
    found = []
    if "@" in text:
        return (f"email:{text.lower()}",)
    if _LAST4.fullmatch(text):
        found.append(f"card:{text}")
    if phone := _phone(text):
        found.append(f"phone:{phone}")
    with contextlib.suppress(money.BadAmount):
        found.append(f"amount:{money.cents_of(text.removeprefix('$').replace(',', ''))}")
    if name := _plain(text):
        found.append(f"name:{name}")
    return tuple(found)
