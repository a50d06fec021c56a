"""The blocking client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, Self, TypeVar, overload

import httpx

from cuota.client import calls
from cuota.client.answers import Configuration, CreatedOrder, Movement, Order, Preview
from cuota.client.base import (
    LONGEST_WAIT,
    PAGE,
    PAUSES,
    TIMEOUT,
    USER_AGENT,
    Operation,
    answer_of,
    lost,
    terms_of,
)
from cuota.client.calls import Amount, Call
from cuota.client.errors import CuotaError
from cuota.client.talk import ClientStep, HttpAnswer, Locked, Lost, Talk, Wait, perform
from cuota.client.tokens import Tokens
from cuota.client.told import Endpoint, EndpointTest, Event

T = TypeVar("T")


class Client:
    """A merchant's calls, for threads. One object serves a whole process; `close` it, or use it in a `with`.

    `base_url` and the credentials are those that the provider issued; `auth_url` and `audience` default to `base_url`.
    `pauses`: seconds before the second, third... try of what is safe to try again. `longest_wait`: a `Retry-After` of
    more seconds than this is not waited for. `http`: an httpx client of your own (proxies, certificates); it stays open.
    """

    def __init__(
        self,
        base_url: str,
        client_id: str,
        client_secret: str,
        *,
        audience: str | None = None,
        auth_url: str | None = None,
        timeout: float = TIMEOUT,
        pauses: Sequence[float] = PAUSES,
        longest_wait: float = LONGEST_WAIT,
        http: httpx.Client | None = None,
    ) -> None:
        self._terms = terms_of(base_url, client_id, client_secret, audience, auth_url, pauses, longest_wait)
        self._tokens = Tokens(self._terms)
        self._lock = threading.Lock()
        self._own = http is None
        self._http = httpx.Client(timeout=timeout) if http is None else http

    def close(self) -> None:
        """Close the connections."""
        if self._own:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def configuration(self) -> Configuration:
        """Your terms: the lowest and highest amount, and who captures."""
        return self._do(calls.configuration())

    def create_order(self, order: Mapping[str, Any], *, idempotency_key: str | None = None) -> CreatedOrder:
        """Create an order from the body of `POST /order`; amounts as Decimal, text or `cents(...)`.

        Give a key that you wrote down with your own order, and a repeat after a crash answers the same order.
        """
        return self._do(calls.create_order(order, idempotency_key))

    def get_order(self, order_id: str) -> Order:
        """How an order stands, by its id or its checkout token."""
        return self._do(calls.get_order(order_id))

    def orders(
        self,
        *,
        merchant_reference: str | None = None,
        status: str | None = None,
        created_from: datetime | date | None = None,
        created_to: datetime | date | None = None,
        page_size: int = PAGE,
    ) -> Iterator[Order]:
        """Your orders, newest first, page after page as you read on; each filter narrows them.

        `status` is an orderStatus, or several with commas. `created_from` is included, `created_to` is not; a date is
        midnight UTC.
        """
        listing = calls.Listing(merchant_reference, status, created_from, created_to, page_size)
        cursor = None
        while True:
            page = self._do(listing.page(cursor))
            yield from page.orders
            cursor = page.cursor
            if cursor is None:
                return

    @overload
    def capture(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[False] = False
    ) -> Movement: ...
    @overload
    def capture(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[True]
    ) -> Preview: ...
    def capture(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: bool = False
    ) -> Movement | Preview:
        """Take money that the consumer's approval set aside. The same reference is applied once."""
        return self._move("capture", order_id, amount, reference, dry_run=dry_run)

    @overload
    def void(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[False] = False
    ) -> Movement: ...
    @overload
    def void(self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[True]) -> Preview: ...
    def void(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: bool = False
    ) -> Movement | Preview:
        """Let go of money that is not captured. The same reference is applied once."""
        return self._move("void", order_id, amount, reference, dry_run=dry_run)

    @overload
    def refund(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[False] = False
    ) -> Movement: ...
    @overload
    def refund(self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[True]) -> Preview: ...
    def refund(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: bool = False
    ) -> Movement | Preview:
        """Give back money that was captured. The same reference is applied once."""
        return self._move("refund", order_id, amount, reference, dry_run=dry_run)

    def _move(
        self, operation: Operation, order_id: str, amount: Amount, reference: str, *, dry_run: bool
    ) -> Movement | Preview:
        if dry_run:
            return self._do(calls.preview(operation, order_id, amount, reference))
        return self._do(calls.move(operation, order_id, amount, reference))

    def events(self, after: str | None = None, *, page_size: int = PAGE) -> Iterator[Event]:
        """Every event after this one (an event's id; None: from the first), oldest first, to the end of the feed."""
        while True:
            page = self._do(calls.events(after, page_size))
            yield from page.events
            if not page.has_more or not page.events:
                return
            after = page.events[-1].id

    def register_endpoint(
        self, url: str, description: str = "", *, idempotency_key: str | None = None
    ) -> Endpoint:
        """Have every event of your account sent to an address. Keep the answer's `secret`."""
        return self._do(calls.register_endpoint(url, description, idempotency_key))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Your endpoints, oldest first."""
        return self._do(calls.endpoints())

    def get_endpoint(self, endpoint_id: str) -> Endpoint:
        """One endpoint."""
        return self._do(calls.get_endpoint(endpoint_id))

    def change_endpoint(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        description: str | None = None,
        paused: bool | None = None,
    ) -> Endpoint:
        """Change, pause or resume it; what is not given stays."""
        return self._do(calls.change_endpoint(endpoint_id, url=url, description=description, paused=paused))

    def rotate_secret(self, endpoint_id: str, *, idempotency_key: str | None = None) -> Endpoint:
        """A new `secret`; for 24 hours the old one signs too."""
        return self._do(calls.rotate_secret(endpoint_id, idempotency_key))

    def test_endpoint(self, endpoint_id: str, *, idempotency_key: str | None = None) -> EndpointTest:
        """Have a `webhook.test` sent now, and learn what your address answered."""
        return self._do(calls.check_endpoint(endpoint_id, idempotency_key))

    def replay_endpoint(
        self,
        endpoint_id: str,
        *,
        after: str | None = None,
        until: str | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """Have events sent again, all or those after `after` up to and with `until`; answers how many."""
        return self._do(calls.replay(endpoint_id, after, until, idempotency_key))

    def remove_endpoint(self, endpoint_id: str) -> None:
        """Have nothing sent to it any more."""
        self._do(calls.remove_endpoint(endpoint_id))

    def _do(self, call: Call[T]) -> T:
        return self._take(perform(self._terms, self._tokens.obtain, call))

    def _take(self, talk: Talk[T]) -> T:
        """Take the steps of a talk, one after the other."""
        try:
            step = next(talk)
            while True:
                try:
                    came = self._step(step)
                except CuotaError as error:
                    step = talk.throw(error)
                else:
                    step = talk.send(came)
        except StopIteration as end:
            result: T = end.value
            return result

    def _step(self, step: ClientStep) -> HttpAnswer | Lost | str | None:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        if isinstance(step, Locked):
            with self._lock:
                return self._take(step.talk)
        headers = {**USER_AGENT, **step.headers}
        try:
            response = self._http.request(step.method, step.url, content=step.body, headers=headers)
        except httpx.RequestError as problem:
            return lost(problem)
        return answer_of(response)
