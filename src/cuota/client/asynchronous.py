"""The asyncio client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
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


class AsyncClient:
    """A merchant's calls, for asyncio. One object serves a whole process; `close` it, or use it in an `async with`.

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
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._terms = terms_of(base_url, client_id, client_secret, audience, auth_url, pauses, longest_wait)
        self._tokens = Tokens(self._terms)
        self._lock = asyncio.Lock()
        self._own = http is None
        self._http = httpx.AsyncClient(timeout=timeout) if http is None else http

    async def aclose(self) -> None:
        """Close the connections."""
        if self._own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def configuration(self) -> Configuration:
        """Your terms: the lowest and highest amount, and who captures."""
        return await self._do(calls.configuration())

    async def create_order(
        self, order: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> CreatedOrder:
        """Create an order from the body of `POST /order`; amounts as Decimal, text or `cents(...)`.

        Give a key that you wrote down with your own order, and a repeat after a crash answers the same order.
        """
        return await self._do(calls.create_order(order, idempotency_key))

    async def get_order(self, order_id: str) -> Order:
        """How an order stands, by its id or its checkout token."""
        return await self._do(calls.get_order(order_id))

    async def orders(
        self,
        *,
        merchant_reference: str | None = None,
        status: str | None = None,
        created_from: datetime | date | None = None,
        created_to: datetime | date | None = None,
        page_size: int = PAGE,
    ) -> AsyncIterator[Order]:
        """Your orders, newest first, page after page as you read on; each filter narrows them.

        `status` is an orderStatus, or several with commas. `created_from` is included, `created_to` is not; a date is
        midnight UTC.
        """
        listing = calls.Listing(merchant_reference, status, created_from, created_to, page_size)
        cursor = None
        while True:
            page = await self._do(listing.page(cursor))
            for order in page.orders:
                yield order
            cursor = page.cursor
            if cursor is None:
                return

    @overload
    async def capture(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[False] = False
    ) -> Movement: ...
    @overload
    async def capture(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[True]
    ) -> Preview: ...
    async def capture(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: bool = False
    ) -> Movement | Preview:
        """Take money that the consumer's approval set aside. The same reference is applied once."""
        return await self._move("capture", order_id, amount, reference, dry_run=dry_run)

    @overload
    async def void(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[False] = False
    ) -> Movement: ...
    @overload
    async def void(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[True]
    ) -> Preview: ...
    async def void(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: bool = False
    ) -> Movement | Preview:
        """Let go of money that is not captured. The same reference is applied once."""
        return await self._move("void", order_id, amount, reference, dry_run=dry_run)

    @overload
    async def refund(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[False] = False
    ) -> Movement: ...
    @overload
    async def refund(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: Literal[True]
    ) -> Preview: ...
    async def refund(
        self, order_id: str, amount: Amount, reference: str, *, dry_run: bool = False
    ) -> Movement | Preview:
        """Give back money that was captured. The same reference is applied once."""
        return await self._move("refund", order_id, amount, reference, dry_run=dry_run)

    async def _move(
        self, operation: Operation, order_id: str, amount: Amount, reference: str, *, dry_run: bool
    ) -> Movement | Preview:
        if dry_run:
            return await self._do(calls.preview(operation, order_id, amount, reference))
        return await self._do(calls.move(operation, order_id, amount, reference))

    async def events(self, after: str | None = None, *, page_size: int = PAGE) -> AsyncIterator[Event]:
        """Every event after this one (an event's id; None: from the first), oldest first, to the end of the feed."""
        while True:
            page = await self._do(calls.events(after, page_size))
            for event in page.events:
                yield event
            if not page.has_more or not page.events:
                return
            after = page.events[-1].id

    async def register_endpoint(
        self, url: str, description: str = "", *, idempotency_key: str | None = None
    ) -> Endpoint:
        """Have every event of your account sent to an address. Keep the answer's `secret`."""
        return await self._do(calls.register_endpoint(url, description, idempotency_key))

    async def endpoints(self) -> tuple[Endpoint, ...]:
        """Your endpoints, oldest first."""
        return await self._do(calls.endpoints())

    async def get_endpoint(self, endpoint_id: str) -> Endpoint:
        """One endpoint."""
        return await self._do(calls.get_endpoint(endpoint_id))

    async def change_endpoint(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        description: str | None = None,
        paused: bool | None = None,
    ) -> Endpoint:
        """Change, pause or resume it; what is not given stays."""
        return await self._do(
            calls.change_endpoint(endpoint_id, url=url, description=description, paused=paused)
        )

    async def rotate_secret(self, endpoint_id: str, *, idempotency_key: str | None = None) -> Endpoint:
        """A new `secret`; for 24 hours the old one signs too."""
        return await self._do(calls.rotate_secret(endpoint_id, idempotency_key))

    async def test_endpoint(self, endpoint_id: str, *, idempotency_key: str | None = None) -> EndpointTest:
        """Have a `webhook.test` sent now, and learn what your address answered."""
        return await self._do(calls.check_endpoint(endpoint_id, idempotency_key))

    async def replay_endpoint(
        self,
        endpoint_id: str,
        *,
        after: str | None = None,
        until: str | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """Have events sent again, all or those after `after` up to and with `until`; answers how many."""
        return await self._do(calls.replay(endpoint_id, after, until, idempotency_key))

    async def remove_endpoint(self, endpoint_id: str) -> None:
        """Have nothing sent to it any more."""
        await self._do(calls.remove_endpoint(endpoint_id))

    async def _do(self, call: Call[T]) -> T:
        return await self._take(perform(self._terms, self._tokens.obtain, call))

    async def _take(self, talk: Talk[T]) -> T:
        """Take the steps of a talk, one after the other."""
        try:
            step = next(talk)
            while True:
                try:
                    came = await self._step(step)
                except CuotaError as error:
                    step = talk.throw(error)
                else:
                    step = talk.send(came)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _step(self, step: ClientStep) -> HttpAnswer | Lost | str | None:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, Locked):
            async with self._lock:
                return await self._take(step.talk)
        headers = {**USER_AGENT, **step.headers}
        try:
            response = await self._http.request(step.method, step.url, content=step.body, headers=headers)
        except httpx.RequestError as problem:
            return lost(problem)
        return answer_of(response)
