"""Describes each call of the API as a value: what to send, how to read the answer, and whether a retry is safe.

`talk.py` carries the calls out.
"""

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
from cuota.client.settled import Balance, Payout, PayoutLinePage, PayoutPage, Terms
from cuota.client.told import Endpoint, EndpointTest, EventPage

T = TypeVar("T")
Amount = Decimal | str
_LONGEST_KEY = 255
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_AMOUNTS = ("amount", "taxAmount", "shippingAmount", "merchantFeeForPaymentPlan")


class Again(Enum):
    """Whether a call may be retried if its answer was lost."""

    READS = "reads"  # may be retried, because the call changes nothing
    SAME = "same"  # may be retried, because the service recognizes a repeat by its reference or key, or a repeat changes nothing
    NEVER = "never"  # may not be retried, because a repeat could act a second time


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call of the API.

    `read` reads the JSON of a successful answer. `body` is made once, so that every attempt sends the same bytes; `key`
    is the Idempotency-Key. `found_again` makes the result if an earlier attempt was applied: it gets the `original` in
    the refusal, parsed and raw. `gone` is the result if a retry gets 404, because the earlier attempt deleted the
    object.
    """

    method: str
    path: str
    read: Callable[[Raw], T]
    again: Again = Again.READS
    body: bytes | None = field(default=None, repr=False)
    key: str | None = None
    found_again: Callable[[Original, Raw], T] | None = None
    gone: T | None = None

    def headers(self, token: str) -> dict[str, str]:
        """Return the headers of every attempt. `token` is the access token."""
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
    """`POST /order`. The idempotency key is made here once, so that all attempts have the same key."""
    body = json_text(_with_amounts(order), "order").encode()
    key = key_text(idempotency_key)
    return Call("POST", "/order", CreatedOrder.read, Again.SAME, body, key)


def _with_amounts(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with every amount as exact text. Raises TypeError for a float or an int."""
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
    """`GET /order/{orderId}`. The id may also be a checkout token."""
    return Call("GET", f"/order/{id_text(order_id)}", Order.read)


@dataclass(frozen=True)
class Listing:
    """The filters of a list of orders. None means no filter."""

    merchant_reference: str | None
    status: str | None
    created_from: datetime | date | None
    created_to: datetime | date | None
    page_size: int

    def page(self, cursor: str | None) -> Call[OrderPage]:
        """`GET /orders`: one page. `cursor` is the cursor that the previous page returned; None gets the first page."""
        parameters = {
            "merchantReference": self.merchant_reference,
            "status": self.status,
            "createdFrom": _when(self.created_from, "created_from"),
            "createdTo": _when(self.created_to, "created_to"),
            "limit": str(self.page_size),
            "cursor": cursor,
        }
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return Call("GET", f"/orders?{query}", OrderPage.read)


def _when(at: datetime | date | None, name: str) -> str | None:
    if at is not None and not isinstance(at, date):
        raise TypeError(f"{name} must be a datetime with a time zone or a date, not {type(at).__name__}.")
    if isinstance(at, datetime) and at.tzinfo is None:
        raise ValueError(f"{name} has no time zone: use a datetime such as datetime.now(UTC), or a date.")
    return None if at is None else at.isoformat()


def move(operation: str, order_id: str, amount: Amount, reference: str) -> Call[Movement]:
    """Capture, void or refund. The service applies each reference only once, so a retry is safe."""

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
        f"/order/{id_text(order_id)}/{operation}",
        lambda raw: Movement.read(operation, raw),
        Again.SAME,
        _move_body(amount, reference),
        found_again=applied_before,
    )


def preview(operation: str, order_id: str, amount: Amount, reference: str) -> Call[Preview]:
    """Capture, void or refund with `dryRun=true`, which changes nothing."""
    path = f"/order/{id_text(order_id)}/{operation}?dryRun=true"
    return Call("POST", path, Preview.read, Again.READS, _move_body(amount, reference))


def _move_body(amount: Amount, reference: str) -> bytes:
    if not isinstance(reference, str) or not reference:
        raise ValueError("reference is empty: use a reference of your own, and store it before the call.")
    return json_text({"amount": amount_text(amount), "merchantReference": reference}).encode()


def events(after: str | None, limit: int) -> Call[EventPage]:
    """`GET /events`: one page."""
    query = {"limit": str(limit)} if after is None else {"after": after, "limit": str(limit)}
    return Call("GET", f"/events?{urlencode(query)}", EventPage.read)


def payouts(status: str | None, after: str | None, limit: int) -> Call[PayoutPage]:
    """`GET /payouts`: one page."""
    return Call("GET", f"/payouts?{paged(after, limit, status=status)}", PayoutPage.read)


def payout(payout_id: str) -> Call[Payout]:
    """`GET /payouts/{payoutId}`."""
    return Call("GET", f"/payouts/{id_text(payout_id)}", Payout.read)


def payout_lines(payout_id: str, after: str | None, limit: int) -> Call[PayoutLinePage]:
    """`GET /payouts/{payoutId}/lines`: one page."""
    return Call("GET", f"/payouts/{id_text(payout_id)}/lines?{paged(after, limit)}", PayoutLinePage.read)


def paged(after: str | None, limit: int, **filters: str | None) -> str:
    """Return the query of one page. A filter that is None is left out."""
    query = {"limit": str(limit), "after": after, **filters}
    return urlencode({name: value for name, value in query.items() if value is not None})


def balance() -> Call[Balance]:
    """`GET /balance`."""
    return Call("GET", "/balance", Balance.read)


def terms() -> Call[tuple[Terms, ...]]:
    """`GET /terms`."""
    return Call("GET", "/terms", lambda raw: tuple(map(Terms.read, raw["data"])))


def register_endpoint(url: str, description: str, key: str | None) -> Call[Endpoint]:
    """`POST /webhook-endpoints`."""
    body = json_text({"url": url, "description": description}).encode()
    return Call("POST", "/webhook-endpoints", Endpoint.read, Again.NEVER, body, key_text(key))


def endpoints() -> Call[tuple[Endpoint, ...]]:
    """`GET /webhook-endpoints`."""
    return Call("GET", "/webhook-endpoints", lambda raw: tuple(map(Endpoint.read, raw["endpoints"])))


def get_endpoint(endpoint_id: str) -> Call[Endpoint]:
    """`GET /webhook-endpoints/{endpointId}`."""
    return Call("GET", f"/webhook-endpoints/{id_text(endpoint_id)}", Endpoint.read)


def change_endpoint(
    endpoint_id: str, *, url: str | None, description: str | None, paused: bool | None
) -> Call[Endpoint]:
    """`PATCH /webhook-endpoints/{endpointId}`. Repeating the same change is harmless, so a retry is safe."""
    changes = {"url": url, "description": description, "paused": paused}
    body = json_text({name: value for name, value in changes.items() if value is not None}).encode()
    return Call("PATCH", f"/webhook-endpoints/{id_text(endpoint_id)}", Endpoint.read, Again.SAME, body)


def remove_endpoint(endpoint_id: str) -> Call[bool]:
    """`DELETE /webhook-endpoints/{endpointId}`. If a retry gets 404, the previous attempt removed the endpoint."""
    return Call(
        "DELETE",
        f"/webhook-endpoints/{id_text(endpoint_id)}",
        lambda raw: raw["state"] == "deleted",
        Again.SAME,
        gone=True,
    )


def rotate_secret(endpoint_id: str, key: str | None) -> Call[Endpoint]:
    """`POST .../rotate-secret`. Never retried, because a second rotation would end the old secret at once."""
    path = f"/webhook-endpoints/{id_text(endpoint_id)}/rotate-secret"
    return Call("POST", path, Endpoint.read, Again.NEVER, b"{}", key_text(key))


def check_endpoint(endpoint_id: str, key: str | None) -> Call[EndpointTest]:
    """`POST .../test`: send a test event."""
    path = f"/webhook-endpoints/{id_text(endpoint_id)}/test"
    return Call("POST", path, EndpointTest.read, Again.NEVER, b"{}", key_text(key))


def replay(endpoint_id: str, after: str | None, until: str | None, key: str | None) -> Call[int]:
    """`POST .../replay`. The result is the number of deliveries that will be sent again."""
    bounds = {"after": after, "until": until}
    body = json_text({name: value for name, value in bounds.items() if value is not None}).encode()
    path = f"/webhook-endpoints/{id_text(endpoint_id)}/replay"
    return Call("POST", path, lambda raw: int(raw["replayed"]), Again.NEVER, body, key_text(key))


def key_text(given: str | None) -> str:
    """Check an Idempotency-Key, or make one."""
    if given is None:
        return str(uuid.uuid4())
    if not 1 <= len(given) <= _LONGEST_KEY or not given.isascii() or not given.isprintable():
        raise ValueError(f"idempotency_key must have 1 to {_LONGEST_KEY} printable ASCII characters.")
    return given


def id_text(given: object) -> str:
    """Check an id that becomes part of a path. Characters such as "/" could change the path."""
    text = str(given)
    if not _ID.fullmatch(text):
        raise ValueError(f"{text!r} is not the id of an order, payout, dispute or endpoint.")
    return text
