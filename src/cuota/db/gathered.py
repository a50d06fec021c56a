"""What waits together goes down together: one statement for many requests, with no timer.

Asks of one kind and one merchant run one batch at a time. Whatever comes while a batch is under way waits, and is the
next batch; who comes alone goes alone, at once. A busy merchant so costs the others no session and no turn.
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
# Of one kind and merchant in one process: eight statements' worth. Who would wait longer is better told at once.
MOST_WAITING = 8 * MOST_TOGETHER


@dataclass(frozen=True, eq=False)
class Gathered(Generic[QueryT, ResultT]):
    """A kind of ask. `one` runs a single ask, `many` several of one merchant and answers in their order.

    `busy` names what an ask is about: two asks about the same never ride in one batch. None: they may. `reads`: it only
    reads, and may be broken off.
    """

    one: Callable[[Any, QueryT], Awaitable[ResultT]]
    many: Callable[[Any, Sequence[QueryT]], Awaitable[Sequence[ResultT]]]
    busy: Callable[[QueryT], Hashable] | None = None
    reads: bool = False


WaitingCalls = list[tuple[Any, "asyncio.Future[Any]"]]


class Gatherer:
    """The asks that wait, by kind and merchant, and the tasks that run them."""

    def __init__(self, alone: object, together: object, refused: Callable[[Exception], bool]) -> None:
        """`alone` and `together` are the sessions of the two.

        `refused` says whether a batch was surely not applied for something in it, so that each ask may be tried
        for itself.
        """
        self._alone = alone
        self._together = together
        self._refused = refused
        self._waiting: dict[tuple[Gathered[Any, Any], UUID], WaitingCalls] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, kind: Gathered[QueryT, ResultT], merchant_id: UUID, asked: QueryT) -> ResultT:
        """Its answer. A caller that goes away changes nothing: what it asked for runs to its end, if it writes.

        Raises Refused(unavailable) at once where too many wait already; then nothing was applied.
        """
        queue = self._waiting.get((kind, merchant_id))
        if queue is None:
            if kind.reads:
                return await self._at_once(kind, merchant_id, asked)
            queue = self._waiting[kind, merchant_id] = []
            self._go_on(kind, merchant_id)
        elif len(queue) >= MOST_WAITING:
            message = "Too many of your requests wait; nothing was applied. Try again shortly."
            raise Refused(Code.UNAVAILABLE, message, retry_after=1)
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        queue.append((asked, future))
        return await future

    async def _at_once(self, kind: Gathered[QueryT, ResultT], merchant_id: UUID, asked: QueryT) -> ResultT:
        """Alone, in the caller's own task: two turns of the loop less. Whoever comes meanwhile waits as for a batch."""
        queue = self._waiting[kind, merchant_id] = []
        try:
            return await kind.one(self._alone, asked)
        finally:
            if queue:
                self._go_on(kind, merchant_id)
            else:
                del self._waiting[kind, merchant_id]

    def _go_on(self, kind: Gathered[Any, Any], merchant_id: UUID) -> None:
        task = asyncio.create_task(self._run(kind, merchant_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for what runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, kind: Gathered[Any, Any], merchant_id: UUID) -> None:
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
        except Exception as problem:  # noqa: BLE001 - it goes to everybody who waits
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
        except Exception as problem:  # noqa: BLE001 - it goes to who waits
            _fail(future, problem)
        else:
            if not future.done():
                future.set_result(answer)


def _fail(future: asyncio.Future[Any], problem: Exception) -> None:
    if not future.done():
        future.set_exception(problem)


def _take(queue: WaitingCalls, busy: Callable[[Any], Hashable] | None) -> WaitingCalls:
    """The next batch, out of the queue; who is about the same as one before waits for the one after."""
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
