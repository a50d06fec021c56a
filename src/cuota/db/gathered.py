"""Batching: requests that wait at the same moment share one SQL statement. No timer is involved.

For each kind of request and each merchant, one batch runs at a time. Requests that arrive while a batch runs are queued, and
become the next batch. A request that arrives when nothing runs starts at once, alone. A busy merchant therefore uses one
database session for each kind of request, and does not delay other merchants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from cuota.core.refusal import Code, Refused

QueryT = TypeVar("QueryT")
ResultT = TypeVar("ResultT")

MOST_TOGETHER = 64
# The longest queue for one kind and one merchant in one process: eight full batches. Further requests are refused at once, which
# is better than a long wait.
MOST_WAITING = 8 * MOST_TOGETHER


@dataclass(frozen=True, eq=False)
class Gathered(Generic[QueryT, ResultT]):
    """A kind of request. `one` runs a single request; `many` runs several requests, and returns their results in order.

    All requests of a batch belong to the same merchant, or to none. `busy` returns a key for a request: two requests with the same
    key are never in the same batch. With None, any requests may share a batch. With `at_once`, a request that finds no batch running
    runs alone in its caller's task. It must only read, because it may be cancelled. The requests that follow wait for it.
    """

    one: Callable[[Any, QueryT], Awaitable[ResultT]]
    many: Callable[[Any, Sequence[QueryT]], Awaitable[Sequence[ResultT]]]
    busy: Callable[[QueryT], Hashable] | None = None
    at_once: bool = False


def by_batches(
    many: Callable[[Any, Sequence[QueryT]], Awaitable[Sequence[ResultT]]], *, at_once: bool = False
) -> Gathered[QueryT, ResultT]:
    """Return a kind of request whose single request runs as a batch of one."""

    async def one(session: Any, asked: QueryT) -> ResultT:
        [result] = await many(session, [asked])
        return result

    return Gathered(one, many, at_once=at_once)


WaitingCalls = list[tuple[Any, "asyncio.Future[Any]"]]


class Gatherer:
    """The queues of requests, by kind and merchant, and the tasks that run the batches."""

    def __init__(self, alone: object, together: object, refused: Callable[[Exception], bool]) -> None:
        """`alone` is the session for single requests, `together` the session for batches.

        `refused` returns whether an exception proves that the database rejected the whole batch because of one request
        in it. Then every request of the batch is run again, alone.
        """
        self._alone = alone
        self._together = together
        self._refused = refused
        self._waiting: dict[tuple[Gathered[Any, Any], UUID | None], WaitingCalls] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, kind: Gathered[QueryT, ResultT], merchant_id: UUID | None, asked: QueryT) -> ResultT:
        """Queue a request and return its result. If the caller is cancelled, a request that writes still runs to its end.

        `merchant_id` is None if the request belongs to no merchant.

        Raises Refused(unavailable) at once if the queue is full; then nothing was applied.
        """
        queue = self._waiting.get((kind, merchant_id))
        if queue is None:
            if kind.at_once:
                return await self._at_once(kind, merchant_id, asked)
            queue = self._waiting[kind, merchant_id] = []
            self._go_on(kind, merchant_id)
        elif len(queue) >= MOST_WAITING:
            message = "Too many of your requests are queued; nothing was applied. Try again shortly."
            raise Refused(Code.UNAVAILABLE, message, retry_after=1)
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        queue.append((asked, future))
        return await future

    async def _at_once(
        self, kind: Gathered[QueryT, ResultT], merchant_id: UUID | None, asked: QueryT
    ) -> ResultT:
        """Run a request alone in the caller's task, which saves two iterations of the event loop. Others are queued meanwhile."""
        queue = self._waiting[kind, merchant_id] = []
        try:
            return await kind.one(self._alone, asked)
        finally:
            if queue:
                self._go_on(kind, merchant_id)
            else:
                del self._waiting[kind, merchant_id]

    def _go_on(self, kind: Gathered[Any, Any], merchant_id: UUID | None) -> None:
        task = asyncio.create_task(self._run(kind, merchant_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for all running batches."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, kind: Gathered[Any, Any], merchant_id: UUID | None) -> None:
        queue = self._waiting[kind, merchant_id]
        while queue:
            batch = _take(queue, kind.busy)
            await self._batch(kind, batch)
        del self._waiting[kind, merchant_id]

    async def _batch(self, kind: Gathered[Any, Any], batch: WaitingCalls) -> None:
        if len(batch) == 1:
            await self._one(kind, *batch[0])
            return
        try:
            answers = await kind.many(self._together, [asked for asked, _ in batch])
        except Exception as problem:  # noqa: BLE001 - every waiting caller gets it
            if not self._refused(problem):
                for _, future in batch:
                    _fail(future, problem)
                return
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
            return
        await asyncio.gather(*(self._one(kind, asked, future) for asked, future in batch))

    async def _one(self, kind: Gathered[Any, Any], asked: object, future: asyncio.Future[Any]) -> None:
        try:
            answer = await kind.one(self._alone, asked)
        except Exception as problem:  # noqa: BLE001 - the waiting caller gets it
            _fail(future, problem)
        else:
            if not future.done():
                future.set_result(answer)


def _fail(future: asyncio.Future[Any], problem: Exception) -> None:
    if not future.done():
        future.set_exception(problem)


def _take(queue: WaitingCalls, busy: Callable[[Any], Hashable] | None) -> WaitingCalls:
    """Remove the next batch from the queue. A request whose key is already in the batch stays queued."""
    if busy is None:
        batch, queue[:] = queue[:MOST_TOGETHER], queue[MOST_TOGETHER:]
        return batch
    batch, later, seen = [], [], set()
    for asked, future in queue:
        name = busy(asked)
        if name in seen or len(batch) == MOST_TOGETHER:
            later.append((asked, future))
        else:
            seen.add(name)
            batch.append((asked, future))
    queue[:] = later
    return batch
