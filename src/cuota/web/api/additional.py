"""Reads `additionalData`: facts about the merchant's logged-in customer, for the risk decision (Advanced Approvals).

An error in this data never blocks a sale. A field that cannot be stored is left out and named in the warnings.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from cuota.core.risk.approvals import read_fields
from cuota.db.order.documents import encode

MOST_FIELDS = 50
LONGEST_FIELD = 500
LARGEST_EXPONENT = LONGEST_FIELD


def read_additional(
    carrier: str, value: Any, today: date, warnings: list[dict[str, str]], field: str = "additionalData"
) -> dict[str, object] | None:
    """Return `{"carrier": ..., "fields": {...}}` with the scalar fields as they were sent; None if no object was sent.

    `carrier` says which part of the request carried the data, and `field` is its name in the request. `warnings` gets
    the warnings. The risk decision interprets the fields later; fields that it will not understand are named in the
    warnings now. If some names are unknown, `unknown` in the result is the number of them.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        warnings.append(
            {"field": field, "code": "wrong_type", "message": "must be an object; it was ignored"}
        )
        return None
    entries = [(name, entry) for name, entry in value.items() if entry is not None]
    fields: dict[str, Any] = {}
    for name, entry in entries[:MOST_FIELDS]:
        if _can_be_kept(name, entry):
            fields[name] = entry
        else:
            shown = "".join(letter if letter.isprintable() else "?" for letter in name[:40])
            message = "must be a text, number or boolean of limited length; it was ignored"
            warnings.append({"field": f"{field}.{shown}", "code": "invalid", "message": message})
    if len(entries) > MOST_FIELDS:
        message = f"has more than {MOST_FIELDS} fields; the fields after those were ignored"
        warnings.append({"field": field, "code": "too_long", "message": message})
    read = read_fields(fields, today)
    for name in read.unreadable:
        message = "has a value of the wrong kind for this field; it was ignored"
        warnings.append({"field": f"{field}.{name[:40]}", "code": "unreadable", "message": message})
    counted = {"unknown": read.unknown} if read.unknown else {}
    return {"carrier": carrier, "fields": fields, **counted}


def _can_be_kept(name: str, entry: Any) -> bool:
    if not name.isprintable() or len(name) > LONGEST_FIELD or isinstance(entry, dict | list):
        return False
    if isinstance(entry, Decimal) and abs(entry.adjusted()) > LARGEST_EXPONENT:
        # Calculating with a number such as 1e9999999 could take a gigabyte of memory.
        return False
    return len(entry if isinstance(entry, str) else encode(entry)) <= LONGEST_FIELD
