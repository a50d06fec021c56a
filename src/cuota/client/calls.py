"""Every call as a value: what is sent, how its answer reads, and whether it may be sent again."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from cuota.client.answers import (
    Configuration,
    CreatedOrder,
    Movement,
    Order,
    OrderPage,
    Original,
    Preview,
    Raw,
)
from cuota.client.money import amount_text, json_text
from cuota.client.told import Endpoint, EndpointTest, EventPage

T = TypeVar("T")
Amount = Decimal | str
_LONGEST_KEY = 255
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_AMOUNTS = ("amount", "taxAmount", "shippingAmount", "merchantFeeForPaymentPlan")


class Again(Enum):
    """What is safe after an answer that was lost."""

    READS = "reads"  # changes nothing
    SAME = "same"  # a second arrival is known by its reference or key, or changes nothing more
    NEVER = "never"  # a second arrival could act a second time


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call. `body` is made once: every try sends the same bytes."""

    method: str
    path: str
    read: Callable[[Raw], T]
    again: Again = Again.READS
    body: bytes | None = field(default=None, repr=False)
    key: str | None = None
    found_again: Callable[[Original, Raw], T] | None = None
    gone: T | None = None

    def headers(self, token: str) -> dict[str, str]:
        """The headers of every try."""
        headers = {"Accept": "application/json", "Authorization": f"Bearer {token}"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers


def configuration() -> Call[Configuration]:
    """`GET /configuration`."""
    return Call("GET", "/configuration", Configuration.read)


def create_order(order: Mapping[str, Any], idempotency_key: str | None) -> Call[CreatedOrder]:
    """`POST /order`. Its key is made here, once for all tries."""
    body = json_text(_with_amounts(order), "order").encode()
    key = _key(idempotency_key)
    return Call("POST", "/order", CreatedOrder.read, Again.SAME, body, key)


def _with_amounts(order: Mapping[str, Any]) -> dict[str, Any]:
    """The body with every amount as exact text; TypeError for one of unclear unit."""
    body = dict(order)
    for name in _AMOUNTS:
        if body.get(name) is not None:
            body[name] = amount_text(body[name], name)
    items = body.get("items")
    if isinstance(items, Sequence) and not isinstance(items, str):
        body["items"] = [_item(item, index) for index, item in enumerate(items)]
    return body


def _item(item: Any, index: int) -> Any:
    if not isinstance(item, Mapping) or item.get("price") is None:
        return item
    return {**item, "price": amount_text(item["price"], f"items[{index}].price")}


def get_order(order_id: str) -> Call[Order]:
    """`GET /order/{orderId}`; a checkout token does too."""
    return Call("GET", f"/order/{_id(order_id)}", Order.read)


@dataclass(frozen=True)
class Listing:
    """Which orders: None is any."""

    merchant_reference: str | None
    status: str | None
    created_from: datetime | date | None
    created_to: datetime | date | None
    page_size: int

    def page(self, cursor: str | None) -> Call[OrderPage]:
        """`GET /orders`: the page at a cursor."""
        given = {
            "merchantReference": self.merchant_reference,
            "status": self.status,
            "createdFrom": _when(self.created_from, "created_from"),
            "createdTo": _when(self.created_to, "created_to"),
            "limit": str(self.page_size),
            "cursor": cursor,
        }
        asked = urlencode({name: value for name, value in given.items() if value is not None})
        return Call("GET", f"/orders?{asked}", OrderPage.read)


def _when(at: datetime | date | None, name: str) -> str | None:
    if isinstance(at, datetime) and at.tzinfo is None:
        raise ValueError(f"{name} has no zone: give a datetime such as datetime.now(UTC), or a date.")
    return None if at is None else at.isoformat()


def move(operation: str, order_id: str, amount: Amount, reference: str) -> Call[Movement]:
    """Capture, void or refund. The reference is the key: the same one is applied once."""

    def applied_before(original: Original, raw: Raw) -> Movement:
        answer = {
            "merchantReference": reference,
            "amount": original.amount,
            "dateTime": raw.get("dateTime"),
            "id": original.id,
        }
        return Movement.read(operation, answer, repeated=True)

    return Call(
        "POST",
        f"/order/{_id(order_id)}/{operation}",
        lambda raw: Movement.read(operation, raw),
        Again.SAME,
        _move_body(amount, reference),
        found_again=applied_before,
    )


def preview(operation: str, order_id: str, amount: Amount, reference: str) -> Call[Preview]:
    """The same call with `dryRun=true`: it changes nothing."""
    path = f"/order/{_id(order_id)}/{operation}?dryRun=true"
    return Call("POST", path, Preview.read, Again.READS, _move_body(amount, reference))


def _move_body(amount: Amount, reference: str) -> bytes:
    if not isinstance(reference, str) or not reference:
        raise ValueError("reference is empty: give one of your own, written down before the call.")
    return json_text({"amount": amount_text(amount), "merchantReference": reference}).encode()


def events(after: str | None, limit: int) -> Call[EventPage]:
    """`GET /events`: one page."""
    asked = {"limit": str(limit)} if after is None else {"after": after, "limit": str(limit)}
    return Call("GET", f"/events?{urlencode(asked)}", EventPage.read)


def register_endpoint(url: str, description: str, key: str | None) -> Call[Endpoint]:
    """`POST /webhook-endpoints`."""
    body = json_text({"url": url, "description": description}).encode()
    return Call("POST", "/webhook-endpoints", Endpoint.read, Again.NEVER, body, _key(key))


def endpoints() -> Call[tuple[Endpoint, ...]]:
    """`GET /webhook-endpoints`."""
    return Call("GET", "/webhook-endpoints", lambda raw: tuple(map(Endpoint.read, raw["endpoints"])))


def get_endpoint(endpoint_id: str) -> Call[Endpoint]:
    """`GET /webhook-endpoints/{endpointId}`."""
    return Call("GET", f"/webhook-endpoints/{_id(endpoint_id)}", Endpoint.read)


def change_endpoint(
    endpoint_id: str, *, url: str | None, description: str | None, paused: bool | None
) -> Call[Endpoint]:
    """`PATCH /webhook-endpoints/{endpointId}`. The same change again changes nothing more."""
    given = {"url": url, "description": description, "paused": paused}
    body = json_text({name: value for name, value in given.items() if value is not None}).encode()
    return Call("PATCH", f"/webhook-endpoints/{_id(endpoint_id)}", Endpoint.read, Again.SAME, body)


def remove_endpoint(endpoint_id: str) -> Call[bool]:
    """`DELETE /webhook-endpoints/{endpointId}`. Gone after a lost answer: that was this call."""
    return Call(
        "DELETE",
        f"/webhook-endpoints/{_id(endpoint_id)}",
        lambda raw: raw["state"] == "deleted",
        Again.SAME,
        gone=True,
    )


def rotate_secret(endpoint_id: str, key: str | None) -> Call[Endpoint]:
    """`POST .../rotate-secret`. Twice would end the old secret at once."""
    path = f"/webhook-endpoints/{_id(endpoint_id)}/rotate-secret"
    return Call("POST", path, Endpoint.read, Again.NEVER, b"{}", _key(key))


def check_endpoint(endpoint_id: str, key: str | None) -> Call[EndpointTest]:
    """`POST .../test`."""
    path = f"/webhook-endpoints/{_id(endpoint_id)}/test"
    return Call("POST", path, EndpointTest.read, Again.NEVER, b"{}", _key(key))


def replay(endpoint_id: str, after: str | None, until: str | None, key: str | None) -> Call[int]:
    """`POST .../replay`: how many deliveries will be sent again."""
    given = {"after": after, "until": until}
    body = json_text({name: value for name, value in given.items() if value is not None}).encode()
    path = f"/webhook-endpoints/{_id(endpoint_id)}/replay"
    return Call("POST", path, lambda raw: int(raw["replayed"]), Again.NEVER, body, _key(key))


def _key(given: str | None) -> str:
    if given is None:
        return str(uuid.uuid4())
    if not 1 <= len(given) <= _LONGEST_KEY or not given.isascii() or not given.isprintable():
        raise ValueError(f"idempotency_key has 1 to {_LONGEST_KEY} printable ASCII characters.")
    return given


def _id(given: object) -> str:
    """An id as part of a path: nothing in it may lead elsewhere."""
    text = str(given)
    if not _ID.fullmatch(text):
        raise ValueError(f"{text!r} is no id of an order or endpoint.")
    return text
