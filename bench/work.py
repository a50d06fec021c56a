"""The operations that are measured: the requests that a client sends, and the numbers of the orders in the pool."""

from __future__ import annotations

import json
from uuid import UUID

WORKS = ("token", "create", "read", "capture", "refund", "dry run")
# Each of these operations uses an order of the pool that no request used before.
ONCE = ("capture", "refund")
AMOUNT = "25.00"

ADDRESS = {
    "addressLine1": "1480 Mission Street",
    "addressLine2": "Apt 12",
    "city": "San Francisco",
    "state": "CA",
    "postcode": "94103",
}
# The body of an order with two items, as a shop sends it: about 1 KB.
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

# Order n of the pool has this UUIDv7: the client, the seed and pgbench use the same formula.
POOL_PREFIX = "01990000-0000-7000-8000-"
# Orders that are captured in full, so that they can be refunded.
CAPTURED_PREFIX = "01990000-0000-7002-8000-"
# Orders that pgbench creates: their ids are ordered by time, like the service's own, and differ from the pool's.
CREATED_PREFIX = "01990000-0000-7001-8000-"


def order_id(number: int, prefix: str = POOL_PREFIX) -> UUID:
    """Return the id of order `number` of a pool."""
    return UUID(f"{prefix}{number:012x}")


def order_id_sql(number: str, prefix: str = POOL_PREFIX) -> str:
    """Return the id of an order as an SQL expression, with the same formula as `order_id`."""
    return f"('{prefix}' || lpad(to_hex({number}::bigint), 12, '0'))::uuid"


def _post(path: str, head: bytes, body: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        path.encode(),
        head,
        len(body),
        body,
    )


def _get(path: str, head: bytes) -> bytes:
    return b"GET %b HTTP/1.1\r\n%bAccept: application/json\r\n\r\n" % (path.encode(), head)


def request(work: str, number: int, head: bytes, credentials: str = "") -> bytes:
    """Return the bytes of one request. `number` names the order of its pool, `head` has the headers of every request."""
    if work == "token":
        return _post("/oauth/token", head, credentials.encode())
    if work == "create":
        return _post("/order", head, ORDER_JSON)
    if work == "read":
        return _get(f"/order/{POOL_PREFIX}{number:012x}", head)
    # A dry run uses up no reference.
    key = f"{'look' if work == 'dry run' else 'bench'}-{number:012d}"
    body = f'{{"amount":"{AMOUNT}","merchantReference":"{key}"}}'.encode()
    if work == "refund":
        return _post(f"/order/{CAPTURED_PREFIX}{number:012x}/refund", head, body)
    dry = "?dryRun=true" if work == "dry run" else ""
    return _post(f"/order/{POOL_PREFIX}{number:012x}/capture{dry}", head, body)


def localstripe_request(work: str, name: str, head: bytes) -> bytes:
    """Return localstripe's closest operation: create an intent, read a charge, capture a part. `name` is the charge's id."""
    if work == "create":
        return _post("/v1/payment_intents", head, b'{"amount":10000,"currency":"usd"}')
    if work == "read":
        return _get(f"/v1/charges/{name}", head)
    return _post(f"/v1/charges/{name}/capture", head, b'{"amount":2500}')


def head(token: str) -> bytes:
    """Return the headers of every request."""
    return f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n".encode()
