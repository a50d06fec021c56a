"""Reads a form or a query that was sent to the gateway: the text that its signature covers, and its fields.

The dotted names of the fields are turned into the JSON body that they stand for. `order.lineItems[0].name` and
`ORDER.LINEITEMS.0.NAME` are the same field. All values are text, and an empty value counts as absent. A field that is
sent twice is an error, because it is unclear which value counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cuota.core.refusal import Code, FieldError, Refused
from cuota.core.wire import form_text
from cuota.web.api.order_body import MOST_ITEMS
from cuota.web.api.unknown import named
from cuota.web.fields import Reader, WrongField, number

# A form of the allowed size has no room for more than this many fields with useful names and values.
MOST_FIELDS = 2000
SIGNATURE = "signature"
Fields = Sequence[tuple[str, str]]
FieldPath = tuple[str, ...]

_TOP = (
    *("merchantId", "merchantReference", "callbackUrl", "capture", "checkoutFlow", "integrationType"),
    *("description", "redirectConfirmUrl", "redirectCancelUrl", "additionalData"),
)
_ORDER = (
    *("amount", "currency", "shippingAmount", "taxAmount", "merchantFeeForPaymentPlan", "merchantReference"),
    *("email", "firstName", "lastName", "phoneNumber"),
)
_ADDRESS = ("line1", "line2", "address1", "address2", "city", "state", "postalCode", "country")
_GROUPS: dict[FieldPath, tuple[str, ...]] = {
    (): _TOP,
    ("order",): _ORDER,
    ("order", "customer"): ("firstName", "lastName", "email", "phoneNumber", *_ADDRESS),
    ("order", "address"): _ADDRESS,
    ("order", "billingAddress"): _ADDRESS,
}
_KNOWN: dict[str, FieldPath] = {
    ".".join((*group, name)).lower(): (*group, name) for group, names in _GROUPS.items() for name in names
}
_SHOWN_PLACES = frozenset(".".join(place) for place in _KNOWN.values())
_ITEM_NAMES = ("name", "description", "quantity", "price", "sku", "isPreOrder", "releaseDate")
_IN_ITEM = {name.lower(): name for name in _ITEM_NAMES}
_ITEM = re.compile(r"order\.lineitems(?:\[([0-9]{1,9})\]|\.([0-9]{1,9}))\.([a-z]+)", re.ASCII)
_IN_ITEMS = ("order.lineitems.", "order.lineitems[")
_APPROVALS = (
    *("customerLoggedIn", "customerIsMember", "merchantRiskAssessment", "sameDevice", "fulfillmentMethod"),
    *("accountCreationDate", "lastTransactionDate", "customerTransactionCount", "customerAverageOrderValue"),
    "customerFraudIncidents",
)
_OF_APPROVALS = {name.lower(): name for name in _APPROVALS}
# Maps whose keys the merchant chooses.
_MAPS = ("metadata", "additionalData")
_FLAGS = {"capture", "isPreOrder"}
_ITEM_PATH = re.compile(r"order\.lineItems\[([0-9]+)\]")


def fields_of(encoded: bytes) -> Fields:
    """Decode the fields of a form or query, in the order in which they were sent. Raises Refused(malformed_request)."""
    try:
        fields = form_text.read(encoded, MOST_FIELDS)
    except ValueError:
        message = (
            f"The fields cannot be read. Send them form-encoded in UTF-8, and at most {MOST_FIELDS} fields."
        )
        raise Refused(Code.MALFORMED_REQUEST, message) from None
    if b"%00" in encoded and any(
        "\0" in part for field in fields if not _is_spared(field[0]) for part in field
    ):
        # The database cannot store a NUL character. JSON bodies are refused for the same reason.
        raise Refused(Code.MALFORMED_REQUEST, "A name or a value contains a NUL character. Remove it.")
    return fields


def _is_spared(name: str) -> bool:
    """Return whether the field belongs to additionalData, whose errors never block a sale."""
    return name.lower() == "additionaldata" or name.lower().startswith("additionaldata.")


def one_of(fields: Fields, name: str) -> str | None:
    """Return the value of the field with this name; None if it is absent or empty. Raises Refused if it was sent twice."""
    found = [value for sent, value in fields if sent.isascii() and sent.lower() == name.lower()]
    if len(found) > 1:
        error = FieldError(name, "duplicate", "is given twice")
        raise Refused(Code.VALIDATION_FAILED, f"{name} is given twice.", errors=(error,))
    return (found[0] if found else None) or None


def signed_text(fields: Fields) -> bytes:
    """Return the text that the signature covers: all other fields as they were sent, sorted by name, form-encoded.

    The encoding is UTF-8. Letters, digits and `_.-~` stay as they are, a space becomes `+`, and every other byte becomes
    `%` and two upper-case hexadecimal digits.
    """
    return form_text.written(sorted(field for field in fields if field[0].lower() != SIGNATURE))


def read_form(fields: Fields, reader: Reader) -> tuple[dict[str, Any], list[int]]:
    """Return the JSON body that the fields stand for, and the sorted indexes of the line items as they were sent.

    The body has no gaps between line items, so the second value maps its indexes to the sent ones. `reader` gets failures.
    """
    body: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    seen: set[tuple[int | None, str]] = set()
    unknown: list[str] = []
    for name, text in fields:
        index, place = _place(name, reader)
        once = index, ".".join(place or (name,)).lower()
        twice, spared = once in seen, _is_spared(name)
        if twice and not spared:
            reader.fail(_shown(name), WrongField("duplicate", "is given twice"))
        seen.add(once)
        if text == "" or name.lower() == SIGNATURE:
            continue
        if place is None:
            # `_place` has already reported a line item's name that cannot be read.
            if not twice and (index is not None or not name.lower().startswith(_IN_ITEMS)):
                unknown.append(name)
            continue
        path = _shown(name) if index is None else f"order.lineItems[{index}].{place[-1]}"
        at: dict[str, Any] = body if index is None else items.setdefault(index, {})
        for part in place[:-1]:
            # The form may also have a plain text field `additionalData`. The fields inside additionalData replace it.
            at[part] = at[part] if isinstance(at.get(part), dict) else {}
            at = at[part]
        if not isinstance(at.get(place[-1]), dict):
            # A repeated field of additionalData becomes a list, so that it is left out with a warning later.
            at[place[-1]] = [] if twice and spared else _value(path, place, text, reader)
    _name_unknown(unknown, reader)
    if items:
        body.setdefault("order", {})["lineItems"] = [items[index] for index in sorted(items)]
    return body, sorted(items)


def _name_unknown(names: Sequence[str], reader: Reader) -> None:
    """Add warnings for fields that the gateway does not know, so that the merchant notices a typo."""
    found = [("", name, _SHOWN_PLACES) for name in names]
    reader.warnings += [FieldError(**warning) for warning in named(found)]


def _shown(name: str) -> str:
    """Return a field's name in a form that is safe to repeat in an answer: printable and short."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:100])


def _place(name: str, reader: Reader) -> tuple[int | None, FieldPath | None]:
    """Return the index of the field's line item (None outside line items), and the field's path in the body or the item.

    The path is None for an unknown field.
    """
    for group in _MAPS:
        if name[: len(group) + 1].lower() == f"{group.lower()}.":
            key = name[len(group) + 1 :]
            return None, (group, _OF_APPROVALS.get(key.lower(), key) if group == "additionalData" else key)
    if not name.isascii():
        return None, None
    lower = name.lower()
    found = _ITEM.fullmatch(lower)
    if found is not None and int(found[1] or found[2]) < MOST_ITEMS:
        leaf = _IN_ITEM.get(found[3])
        return int(found[1] or found[2]), (leaf,) if leaf else None
    if lower.startswith(_IN_ITEMS):
        must = f"must be written as order.lineItems[0].name, with an index from 0 to {MOST_ITEMS - 1}"
        reader.fail(_shown(name), WrongField("invalid", must), prefill=True)
        return None, None
    return None, _KNOWN.get(lower)


def _value(path: str, place: FieldPath, text: str, reader: Reader) -> Any:
    """Convert the text of a field to the type that it has in a JSON body: a boolean, a number, or text."""
    name = place[-1]
    if place[0] in _MAPS or (name not in _FLAGS and name != "quantity"):
        return text
    if name in _FLAGS:
        flag = {"true": True, "false": False}.get(text.lower())
        if flag is None:
            reader.fail(path, WrongField("invalid", "must be true or false"), prefill=name != "capture")
        # An absent `capture` counts as true, which makes callbackUrl required. Return False, so that a request without
        # `callbackUrl` does not get a second error.
        return False if flag is None and name == "capture" else flag
    try:
        return number(text)
    except WrongField as wrong:
        reader.fail(path, wrong, prefill=True)
        return None


def as_sent(error: FieldError, indexes: Sequence[int]) -> FieldError:
    """Return an error of the body with the line item's index as it was sent."""

    def sent(found: re.Match[str]) -> str:
        return f"order.lineItems[{indexes[int(found[1])]}]"

    return FieldError(_ITEM_PATH.sub(sent, error.field), error.code, error.message)
