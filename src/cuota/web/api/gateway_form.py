"""A form post or a query of the gateway: what is signed of it, and its dotted names as the body they stand for.

`order.lineItems[0].name` and `ORDER.LINEITEMS.0.NAME` are one field. Everything is text, an empty text is absent, and
a field given twice is an error: of two values nobody knows which was meant.
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

# Each has a name and is signed: in the bytes that a form may have there is no room for more useful ones.
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
# Maps whose keys are the merchant's own.
_MAPS = ("metadata", "additionalData")
_FLAGS = {"capture", "isPreOrder"}
_ITEM_PATH = re.compile(r"order\.lineItems\[([0-9]+)\]")


def fields_of(encoded: bytes) -> Fields:
    """The fields in the order they came. Raises Refused(malformed_request)."""
    try:
        fields = form_text.read(encoded, MOST_FIELDS)
    except ValueError:
        message = (
            f"The fields are not readable: form-encoded UTF-8 is expected, and at most {MOST_FIELDS} fields."
        )
        raise Refused(Code.MALFORMED_REQUEST, message) from None
    if b"%00" in encoded and any(
        "\0" in part for field in fields if not _is_spared(field[0]) for part in field
    ):
        # As in JSON: the database keeps no such text.
        raise Refused(Code.MALFORMED_REQUEST, "A name or a value contains a NUL character. Remove it.")
    return fields


def _is_spared(name: str) -> bool:
    """Nothing wrong in what a merchant says of its customer costs a sale."""
    return name.lower() == "additionaldata" or name.lower().startswith("additionaldata.")


def one_of(fields: Fields, name: str) -> str | None:
    """The value of the one field of this name; None where it is absent or empty. Raises Refused where it stands twice."""
    found = [value for sent, value in fields if sent.isascii() and sent.lower() == name.lower()]
    if len(found) > 1:
        error = FieldError(name, "duplicate", "is given twice")
        raise Refused(Code.VALIDATION_FAILED, f"{name} is given twice.", errors=(error,))
    return (found[0] if found else None) or None


def signed_text(fields: Fields) -> bytes:
    """What the signature is made over: the other fields as they were sent, sorted by name, form-encoded.

    UTF-8; letters, digits and `_.-~` stand for themselves, a space is `+`, all else is `%` and two upper-case digits.
    """
    return form_text.written(sorted(field for field in fields if field[0].lower() != SIGNATURE))


def read_form(fields: Fields, reader: Reader) -> tuple[dict[str, Any], list[int]]:
    """The body that the fields stand for, and the line items' indexes as they were sent: gaps are closed."""
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
            # A line item's name that is not readable is named already.
            if not twice and (index is not None or not name.lower().startswith(_IN_ITEMS)):
                unknown.append(name)
            continue
        path = _shown(name) if index is None else f"order.lineItems[{index}].{place[-1]}"
        at: dict[str, Any] = body if index is None else items.setdefault(index, {})
        for part in place[:-1]:
            # additionalData may stand there as a text of its own: its parts say more.
            at[part] = at[part] if isinstance(at.get(part), dict) else {}
            at = at[part]
        if not isinstance(at.get(place[-1]), dict):
            # A list is no value of anything: it is left out and named.
            at[place[-1]] = [] if twice and spared else _value(path, place, text, reader)
    _name_unknown(unknown, reader)
    if items:
        body.setdefault("order", {})["lineItems"] = [items[index] for index in sorted(items)]
    return body, sorted(items)


def _name_unknown(names: Sequence[str], reader: Reader) -> None:
    """A field that nothing reads is ignored and named, so that a typo is noticed."""
    found = [("", name, _SHOWN_PLACES) for name in names]
    reader.warnings += [FieldError(**warning) for warning in named(found)]


def _shown(name: str) -> str:
    """A name as an answer and the order's document may hold it."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:100])


def _place(name: str, reader: Reader) -> tuple[int | None, FieldPath | None]:
    """Where a field stands in the body, within a line item by its index; None for a field that we do not know."""
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
    """Everything is text: what is not text in the body is read here."""
    name = place[-1]
    if place[0] in _MAPS or (name not in _FLAGS and name != "quantity"):
        return text
    if name in _FLAGS:
        flag = {"true": True, "false": False}.get(text.lower())
        if flag is None:
            reader.fail(path, WrongField("invalid", "must be true or false"), prefill=name != "capture")
        # Not what it would be if it were absent: then it would be asked for more.
        return False if flag is None and name == "capture" else flag
    try:
        return number(text)
    except WrongField as wrong:
        reader.fail(path, wrong, prefill=True)
        return None


def as_sent(error: FieldError, indexes: Sequence[int]) -> FieldError:
    """An error of the body under the index that was sent."""

    def sent(found: re.Match[str]) -> str:
        return f"order.lineItems[{indexes[int(found[1])]}]"

    return FieldError(_ITEM_PATH.sub(sent, error.field), error.code, error.message)
