"""Order bodies with one change, and helpers that read refusals."""

from __future__ import annotations

import copy
import json
from typing import Any

import httpx

from support.makers import Merchant, order_body

JSON = {"Content-Type": "application/json"}
ADDRESS = {
    "addressLine1": "1480 Mission Street",
    "addressLine2": "Suite 4",
    "city": "San Francisco",
    "state": "CA",
    "postcode": "94103",
}
FULL: dict[str, Any] = order_body(
    "119.96",
    consumer={
        "phoneNumber": "2125550100",
        "givenNames": "Jordan",
        "surname": "Rivera",
        "email": "jordan@mail.example",
    },
    billing=ADDRESS,
    shipping={**ADDRESS, "addressLine2": None},
    description="Two pairs of shoes",
    items=[
        {"name": "Shoe", "sku": "S-42", "quantity": 2, "price": "49.99", "description": None},
        {"name": "Lace", "sku": "L-1", "quantity": 1, "price": 9.99, "description": "black"},
    ],
    taxAmount="8.88",
    shippingAmount="1.11",
    metadata={"cart": "c-1"},
    merchantFeeForPaymentPlan="2.50",
)


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the full body with another value at a dotted path. `items[0].name` is the first item's name."""
    body = copy.deepcopy(FULL)
    at: Any = body
    *way, last = path.replace("[0]", ".0").split(".")
    for name in way:
        at = at[int(name) if isinstance(at, list) else name]
    at[int(last) if isinstance(at, list) else last] = value
    return body


def with_literal(name: str, literal: str) -> bytes:
    """Return a small body in which one field has exactly this JSON text."""
    marked = json.dumps(order_body(**{name: "@"}) if name == "amount" else {**order_body(), name: "@"})
    assert marked.count('"@"') == 1
    return marked.replace('"@"', literal).encode()


async def post(merchant: Merchant, content: bytes, **headers: str) -> httpx.Response:
    """Send `POST /order` with these bytes."""
    return await merchant.http.post("/order", content=content, headers={**JSON, **headers})


def failures(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the errors of a refusal, as (field, code)."""
    return [(error["field"], error["code"]) for error in answer.json()["errors"]]


def assert_refused(answer: httpx.Response, status: int, code: str) -> None:
    """Assert that the answer is this refusal, in the form of all refusals."""
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
