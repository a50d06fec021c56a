"""The three works that are measured: what a client sends, and how the orders of the pool are numbered."""

from __future__ import annotations

import json
from uuid import UUID

WORKS = ("create", "read", "capture")
AMOUNT = "25.00"

ADDRESS = {
    "addressLine1": "1480 Mission Street",
    "addressLine2": "Apt 12",
    "city": "San Francisco",
    "state": "CA",
    "postcode": "94103",
}
# An order as a shop with two things in the basket sends it: about 1 KB.
ORDER = {
    "amount": "100.00",
    "consumer": {
        "phoneNumber": "2125550142",
        "givenNames": "Jordan",
        "surname": "Rivera",
        "email": "jordan@mail.example",
    },
    "billing": ADDRESS,
    "shipping": ADDRESS,
    "description": "Order A-1042",
    "items": [
        {"name": "Linen shirt", "sku": "LS-30-M", "quantity": 2, "price": 31.5, "description": "Sand, M"},
        {"name": "Canvas tote", "sku": "CT-11", "quantity": 1, "price": 23.0, "description": "Natural"},
    ],
    "merchant": {
        "redirectConfirmUrl": "https://shop.example/confirm?cart=7",
        "redirectCancelUrl": "https://shop.example/cancel",
    },
    "merchantReference": "A-1042",
    "taxAmount": "8.00",
    "shippingAmount": "6.00",
}
ORDER_JSON = json.dumps(ORDER, separators=(",", ":")).encode()

# Order n of the pool, as UUIDv7: one formula for the client, the seed and pgbench.
POOL_PREFIX = "01990000-0000-7000-8000-"
# What pgbench creates: ordered by time as the service's own, beside the pool.
CREATED_PREFIX = "01990000-0000-7001-8000-"


def order_id(number: int) -> UUID:
    """The id of order `number` of the pool."""
    return UUID(f"{POOL_PREFIX}{number:012x}")


def order_id_sql(number: str, prefix: str = POOL_PREFIX) -> str:
    """The same as an SQL expression."""
    return f"('{prefix}' || lpad(to_hex({number}::bigint), 12, '0'))::uuid"


def request(work: str, number: int, head: bytes) -> bytes:
    """The bytes of one request; `number` names the order of the pool, `head` the headers of every request."""
    if work == "create":
        return b"POST /order HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
            head,
            len(ORDER_JSON),
            ORDER_JSON,
        )
    path = f"/order/{POOL_PREFIX}{number:012x}".encode()
    if work == "read":
        return b"GET %b HTTP/1.1\r\n%bAccept: application/json\r\n\r\n" % (path, head)
    body = f'{{"amount":"{AMOUNT}","merchantReference":"bench-{number:012d}"}}'.encode()
    return b"POST %b/capture HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        path,
        head,
        len(body),
        body,
    )


def head(token: str) -> bytes:
    """The headers that every request carries."""
    return f"Host: pay.example\r\nAuthorization: Bearer {token}\r\n".encode()
