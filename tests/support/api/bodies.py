"""Order bodies with one thing changed, and the reading of what is refused."""

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
    """The full body with the value at a dotted path replaced; `items[0].name` names the first item's."""
    body = copy.deepcopy(FULL)
    at: Any = body
    *way, last = path.replace("[0]", ".0").split(".")
    for name in way:
        at = at[int(name) if isinstance(at, list) else name]
    at[int(last) if isinstance(at, list) else last] = value
    return body


def with_literal(name: str, literal: str) -> bytes:
    """A small body in which one field is this very JSON text."""
    marked = json.dumps(order_body(**{name: "@"}) if name == "amount" else {**order_body(), name: "@"})
    assert marked.count('"@"') == 1
    return marked.replace('"@"', literal).encode()


async def post(merchant: Merchant, content: bytes, **headers: str) -> httpx.Response:
    """`POST /order` of raw bytes."""
    return await merchant.http.post("/order", content=content, headers={**JSON, **headers})


def failures(answer: httpx.Response) -> list[tuple[str, str]]:
    """What a refusal lists, as (field, code)."""
    return [(error["field"], error["code"]) for error in answer.json()["errors"]]


def assert_refused(answer: httpx.Response, status: int, code: str) -> None:
    """It is this refusal, in the shape that all have."""
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
