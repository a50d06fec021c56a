"""The blocking client. `asynchronous.py` has the same calls for asyncio programs."""

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
from cuota.client.settled import Balance, Payout, PayoutLine, Terms
from cuota.client.sync_disputes import DisputeMethods
from cuota.client.talk import ClientStep, HttpAnswer, Locked, Lost, Talk, Wait, perform
from cuota.client.tokens import Tokens
from cuota.client.told import Endpoint, EndpointTest, Event

T = TypeVar("T")


class Client(DisputeMethods):
    """The calls of the merchant API, for threads.

    One object may be shared by the whole process. Close it with `close`, or use it in a `with`.

    `base_url` and the credentials are those that the provider issued; `auth_url` and `audience` default to `base_url`.
    `timeout`: seconds for connecting, and for each read or write. `pauses`: seconds before each retry of a call that is
    safe to retry. `longest_wait`: if the service asks for a longer wait (`Retry-After`), in seconds, the call fails
    instead. `http`: an httpx client of your own, for example with a proxy or certificates; `close` leaves it open.

    Every call raises CuotaError, or ValueError or TypeError for wrong arguments.
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
        """Return your terms: the lowest and highest order amount, and whether you capture orders yourself."""
        return self._do(calls.configuration())

    def create_order(self, order: Mapping[str, Any], *, idempotency_key: str | None = None) -> CreatedOrder:
        """Create an order from the body of `POST /order`. Amounts are Decimals, text or `cents(...)`.

        Store an `idempotency_key` with your own order before the call. If your program crashes, repeat the call with the
        same key: it returns the same order. Without a key, the client makes one for each call.
        """
        return self._do(calls.create_order(order, idempotency_key))

    def get_order(self, order_id: str) -> Order:
        """Return an order by its id or its checkout token."""
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
        """Iterate over your orders, newest first. The next page is fetched when the iteration reaches it.

        The result has the orders that match all filters. `status` is an orderStatus, or several separated by commas.
        `created_from` is inclusive and `created_to` exclusive; a date means midnight UTC.
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
        """Capture part or all of an approved order. A repeated call with the same reference is applied only once."""
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
        """Void part or all of the uncaptured amount. A repeated call with the same reference is applied only once."""
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
        """Refund part or all of the captured amount. A repeated call with the same reference is applied only once."""
        return self._move("refund", order_id, amount, reference, dry_run=dry_run)

    def _move(
        self, operation: Operation, order_id: str, amount: Amount, reference: str, *, dry_run: bool
    ) -> Movement | Preview:
        if dry_run:
            return self._do(calls.preview(operation, order_id, amount, reference))
        return self._do(calls.move(operation, order_id, amount, reference))

    def events(self, after: str | None = None, *, page_size: int = PAGE) -> Iterator[Event]:
        """Iterate over all events after the event with the id `after` (None: from the first event), oldest first."""
        while True:
            page = self._do(calls.events(after, page_size))
            yield from page.events
            if not page.has_more or not page.events:
                return
            after = page.events[-1].id

    def payouts(self, *, status: str | None = None, page_size: int = PAGE) -> Iterator[Payout]:
        """Iterate over your payouts, newest first. `status` is one status, or several separated by commas."""
        cursor = None
        while True:
            page = self._do(calls.payouts(status, cursor, page_size))
            yield from page.payouts
            cursor = page.cursor
            if cursor is None:
                return

    def payout(self, payout_id: str) -> Payout:
        """Return a payout with its totals."""
        return self._do(calls.payout(payout_id))

    def payout_lines(self, payout_id: str, *, page_size: int = PAGE) -> Iterator[PayoutLine]:
        """Iterate over the lines of a payout, in their order."""
        cursor = None
        while True:
            page = self._do(calls.payout_lines(payout_id, cursor, page_size))
            yield from page.lines
            cursor = page.cursor
            if cursor is None:
                return

    def balance(self) -> Balance:
        """Return your balance: what Cuota owes you now."""
        return self._do(calls.balance())

    def terms(self) -> tuple[Terms, ...]:
        """Return all versions of your terms, the oldest first."""
        return self._do(calls.terms())

    def register_endpoint(
        self, url: str, description: str = "", *, idempotency_key: str | None = None
    ) -> Endpoint:
        """Register an address to which all events of your account are sent. Store the `secret` of the result."""
        return self._do(calls.register_endpoint(url, description, idempotency_key))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return your webhook endpoints, oldest first."""
        return self._do(calls.endpoints())

    def get_endpoint(self, endpoint_id: str) -> Endpoint:
        """Return one webhook endpoint."""
        return self._do(calls.get_endpoint(endpoint_id))

    def change_endpoint(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        description: str | None = None,
        paused: bool | None = None,
    ) -> Endpoint:
        """Change, pause or resume an endpoint. Arguments that are None change nothing."""
        return self._do(calls.change_endpoint(endpoint_id, url=url, description=description, paused=paused))

    def rotate_secret(self, endpoint_id: str, *, idempotency_key: str | None = None) -> Endpoint:
        """Give an endpoint a new `secret`. For 24 hours, webhooks are signed with both the old and the new secret."""
        return self._do(calls.rotate_secret(endpoint_id, idempotency_key))

    def test_endpoint(self, endpoint_id: str, *, idempotency_key: str | None = None) -> EndpointTest:
        """Send a `webhook.test` event to an endpoint now, and return your server's answer."""
        return self._do(calls.check_endpoint(endpoint_id, idempotency_key))

    def replay_endpoint(
        self,
        endpoint_id: str,
        *,
        after: str | None = None,
        until: str | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """Send events again: those after the event `after`, up to and including the event `until` (both optional).

        Returns the number of deliveries.
        """
        return self._do(calls.replay(endpoint_id, after, until, idempotency_key))

    def remove_endpoint(self, endpoint_id: str) -> None:
        """Remove an endpoint. No more events are sent to it."""
        self._do(calls.remove_endpoint(endpoint_id))

    def _do(self, call: Call[T]) -> T:
        return self._take(perform(self._terms, self._tokens.obtain, call))

    def _take(self, talk: Talk[T]) -> T:
        """Carry out the steps of a `Talk`, one after the other, and return its result."""
        try:
            step = next(talk)
            while True:
                try:
                    result = self._step(step)
                except CuotaError as error:
                    step = talk.throw(error)
                else:
                    step = talk.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

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
