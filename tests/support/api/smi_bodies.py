"""Bodies of `POST /checkouts`, as shop systems send them."""

from __future__ import annotations

import json
from typing import Any

BACK = "http://127.0.0.1:9/back?cart=7"
PLACE = {
    "line1": "12 Main Street",
    "line2": "Apt 4",
    "city": "New York",
    "state": "NY",
    "postal_code": "10001",
    "country": "US",
}


def smi_body(amount: object = "100.00", **order: Any) -> dict[str, Any]:
    """Return a valid body of `POST /checkouts`."""
    return {
        "order": {"reference": "S-7", "amount": amount, "currency": "USD", **order},
        "config": {"redirect_uri": BACK},
    }


FULL: dict[str, Any] = {
    **smi_body(
        "119.96",
        items=[{"name": "Shirt", "sku": "SH-1", "quantity": 2, "price": "57.48", "description": "Blue"}],
        shipping={"amount": 5, "address": {**PLACE, "line2": None}},
    ),
    "shopper": {
        "first_name": "José",
        "last_name": "Rivera-Smith",
        "email": "jose@mail.example",
        "phone": "2125550100",
        "billing_address": PLACE,
        "additional_data": {"customer_logged_in": "true", "account_creation_date": "2024-02-29"},
    },
}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the full body with another value at a dotted path."""
    body: dict[str, Any] = json.loads(json.dumps(FULL))
    at: Any = body
    *way, last = path.replace("[0]", ".0").split(".")
    for name in way:
        at = at[int(name) if isinstance(at, list) else name]
    at[int(last) if isinstance(at, list) else last] = value
    return body
