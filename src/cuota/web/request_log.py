"""The request log of merchants: collects their API calls, and writes them in batches, outside of every request.

A request only puts its facts into a queue of limited size. If the database is slow, the queue fills up, and further calls are
dropped and counted. So no request waits for the log. Bodies are masked before they are written (`core/wire/log_mask.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from starlette.types import Scope

from cuota.core.refusal import Refused
from cuota.core.wire.log_mask import answer_for_log, for_log, query_for_log
from cuota.db.desk import api_requests
from cuota.db.desk.api_requests import NewApiRequest
from cuota.db.order.documents import encode
from cuota.db.pool import BUSY, GONE
from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Caller
from cuota.web.server.client_address import seen_address_of
from cuota.web.server.metrics import count_logged

MOST_WAITING = 2000
MOST_WAITING_BYTES = 8 * 1024 * 1024
# For a longer body the log stores only the size, because masking would take milliseconds.
LONGEST_BODY = 16 * 1024
WRITTEN_AT_ONCE = 500
# Each part of the masking takes less than a millisecond, so other requests do not wait.
MASKED_AT_ONCE = 25
EVERY_SECONDS = 1.0
LAST_SECONDS = 2.0
_OVERHEAD = 500
_ORDER_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_decoder = msgspec.json.Decoder(float_hook=Decimal)
log = logging.getLogger("cuota.requests")


@dataclass(slots=True)
class CallRecord:
    """The data that the log collects about one call while it is answered. For a longer body, only the length is stored."""

    merchant_id: UUID
    client_id: str
    body: bytes = b""
    body_size: int = 0
    answer: list[bytes] = field(default_factory=list)
    answer_size: int = 0

    def asked(self, body: bytes) -> None:
        """Keep the request's body."""
        self.body_size = len(body)
        if self.body_size <= LONGEST_BODY:
            self.body = body

    def answered(self, chunk: bytes) -> None:
        """Keep a part of the response's body."""
        self.answer_size += len(chunk)
        if self.answer_size <= LONGEST_BODY:
            self.answer.append(chunk)


@dataclass(slots=True)
class _Ended:
    record: CallRecord
    request_id: str
    method: str
    route: str
    path_id: str
    status: int
    ms: float
    keyed: bool
    query: bytes
    sender: tuple[str, str]

    @property
    def size(self) -> int:
        return len(self.record.body) + min(self.record.answer_size, LONGEST_BODY) + _OVERHEAD


class RequestLog:
    """The log of one process."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: deque[_Ended] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()

    def begin(self, caller: Caller) -> CallRecord | None:
        """Begin the record of a call. Return None if this merchant has no log, or while the queue is full."""
        if not caller.staffed:
            return None
        if len(self._waiting) >= MOST_WAITING or self._bytes >= MOST_WAITING_BYTES:
            count_logged("dropped")
            return None
        return CallRecord(caller.merchant.merchant_id, caller.client_id)

    def end(self, record: CallRecord, scope: Scope, status: int, seconds: float) -> None:
        """Put the record of an answered call into the queue."""
        keyed, forwarded = False, ""
        for name, value in scope["headers"]:
            if name == b"idempotency-key":
                keyed = True
            elif name == b"x-forwarded-for":
                forwarded = f"{forwarded},{value.decode('latin-1')}" if forwarded else value.decode("latin-1")
        client = scope.get("client")
        ended = _Ended(
            record, scope["request_id"], scope["method"], scope["route"].path,
            scope["path_params"].get("order_id", ""), status, seconds * 1000, keyed, scope["query_string"],
            (client[0] if client else "", forwarded),
        )  # fmt: skip
        self._waiting.append(ended)
        self._bytes += ended.size
        if len(self._waiting) >= WRITTEN_AT_ONCE:
            self._wake.set()

    async def run(self, stop: asyncio.Event, gate: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """Write the log until `stop`, at least every second. `gate` delays the writing while a sandbox is copied."""
        ending = asyncio.ensure_future(stop.wait())
        while not stop.is_set():
            self._wake.clear()
            woken = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait((ending, woken), timeout=EVERY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            async with gate():
                await self.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self.flush()

    async def flush(self) -> None:
        """Write the waiting calls. Calls that the database refuses stay in the queue and are retried."""
        for _ in range(len(self._waiting) // WRITTEN_AT_ONCE + 1):
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), WRITTEN_AT_ONCE))]
            self._bytes -= sum(each.size for each in batch)
            if not batch or not await self._write(batch):
                return

    async def _write(self, batch: list[_Ended]) -> bool:
        good = True
        for merchant_id, pairs in (await self._entries(batch)).items():
            try:
                await api_requests.add(self._context.pool, merchant_id, [entry for _, entry in pairs])
            except (Refused, *GONE, *BUSY) as problem:
                log.warning("request log waits", extra={"facts": {"problem": type(problem).__name__}})
                self._again([ended for ended, _ in pairs])
                good = False
            except Exception:
                # An entry that can never be written must not block the other entries forever.
                log.exception("request log lost calls")
                count_logged("dropped", len(pairs))
            else:
                count_logged("written", len(pairs))
        return good

    async def _entries(self, batch: list[_Ended]) -> dict[UUID, list[tuple[_Ended, NewApiRequest]]]:
        """Return the calls to write, by merchant."""
        by_merchant: dict[UUID, list[tuple[_Ended, NewApiRequest]]] = defaultdict(list)
        for at, ended in enumerate(batch):
            try:
                entry = self._entry(ended)
            except Exception:
                log.exception("request log lost a call")
                count_logged("dropped")
            else:
                by_merchant[ended.record.merchant_id].append((ended, entry))
            if at % MASKED_AT_ONCE == MASKED_AT_ONCE - 1:
                await asyncio.sleep(0)
        return by_merchant

    def _again(self, calls: list[_Ended]) -> None:
        """Put calls back at the front of the queue. Calls that no longer fit are dropped."""
        free = max(0, MOST_WAITING - len(self._waiting))
        count_logged("dropped", max(0, len(calls) - free))
        self._waiting.extendleft(reversed(calls[:free]))
        self._bytes += sum(each.size for each in calls[:free])

    def _entry(self, ended: _Ended) -> NewApiRequest:
        record = ended.record
        refused = ended.status >= 400
        asked, _ = _masked(record.body, record.body_size, for_log)
        answer, told = _masked(
            b"".join(record.answer), record.answer_size, partial(answer_for_log, refused=refused)
        )
        code = told.get("code") if refused else None
        query = query_for_log(ended.query.decode("latin-1")) if ended.query else None
        return NewApiRequest(
            ended.request_id, record.client_id, seen_address_of(self._context.settings, *ended.sender),
            ended.method, ended.route, _order_id(told, ended.path_id), ended.status,
            code if isinstance(code, str) else None, ended.ms, ended.keyed,
            encode(query).decode() if query else None, asked, answer,
        )  # fmt: skip


def _masked(body: bytes, size: int, mask: Callable[[Any], Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the masked text of a body, or a note in brackets; and the masked object, empty if the body is not a JSON object."""
    if not size:
        return None, {}
    if size > LONGEST_BODY:
        return f"({size:,} bytes: too long to show)", {}
    try:
        value = mask(_decoder.decode(body))
        return encode(value).decode(), value if isinstance(value, dict) else {}
    except (ValueError, ArithmeticError, RecursionError, TypeError):
        return f"({size:,} bytes that are not JSON)", {}


def _order_id(told: dict[str, Any], path_id: str) -> str | None:
    """Return the order that a call is about. The response names the order, or the path does.

    A path may have a checkout's token in place of the order id. The token opens the checkout, so the log does not store it: a
    token is a UUID of another version.
    """
    named = told.get("orderId")
    for text in (named, path_id):
        if isinstance(text, str) and _ORDER_ID.fullmatch(text):
            return text
    return None
