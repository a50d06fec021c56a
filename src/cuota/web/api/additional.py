"""What a merchant says about its logged-in customer (Advanced Approvals): kept for the risk decision, never in the way.

Nothing wrong in it costs a sale: what cannot be kept is left out and named in the warnings.
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
    """`{"carrier": ..., "fields": {...}}` with the scalar fields as they were sent; None where nothing was.

    They are read when the order is decided; what will not be readable then is named in the warnings now. `unknown`,
    where there are any, counts the names that nobody knows.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        warnings.append(
            {"field": field, "code": "wrong_type", "message": "must be an object: it was not read"}
        )
        return None
    given = [(name, entry) for name, entry in value.items() if entry is not None]
    fields: dict[str, Any] = {}
    for name, entry in given[:MOST_FIELDS]:
        if _can_be_kept(name, entry):
            fields[name] = entry
        else:
            shown = "".join(letter if letter.isprintable() else "?" for letter in name[:40])
            warnings.append({"field": f"{field}.{shown}", "code": "invalid", "message": "it was not read"})
    if len(given) > MOST_FIELDS:
        message = f"has more than {MOST_FIELDS} fields: the others were not read"
        warnings.append({"field": field, "code": "too_long", "message": message})
    read = read_fields(fields, today)
    for name in read.unreadable:
        message = "cannot be read as what it is: it was ignored"
        warnings.append({"field": f"{field}.{name[:40]}", "code": "unreadable", "message": message})
    counted = {"unknown": read.unknown} if read.unknown else {}
    return {"carrier": carrier, "fields": fields, **counted}


def _can_be_kept(name: str, entry: Any) -> bool:
    if not name.isprintable() or len(name) > LONGEST_FIELD or isinstance(entry, dict | list):
        return False
    if isinstance(entry, Decimal) and abs(entry.adjusted()) > LARGEST_EXPONENT:
        # Nine characters such as 1e9999999 are no fact, but a gigabyte to whoever reckons with them.
        return False
    return len(entry if isinstance(entry, str) else encode(entry)) <= LONGEST_FIELD
