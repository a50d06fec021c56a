"""Sends many requests over raw sockets, and checks every answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from support.contract import Contract
from support.hostile.mutator import Request
from support.hostile.wire import SILENT, Answer, read_answer

AT_ONCE = 24
# Longer than the server's own timeouts for a head and a body. A connection that is silent until then hangs.
HANG_SECONDS = 30.0
PATIENCE = 1.0
_MOVES = re.compile(rb"^POST /order/([0-9a-f-]{36})/(capture|void|refund)/? HTTP")
_TEXT = {400, 408, 413, 414, 431, 503}
_PAGES = ("the form of",)


@dataclass
class Verdict:
    """The results."""

    contract: Contract
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    # Movements that were answered as applied, and movements without an answer.
    applied: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    untold: Counter[tuple[str, str]] = field(default_factory=Counter)
    created: set[str] = field(default_factory=set)
    controls: int = 0
    turned_away: int = 0

    def judge(self, request: Request, answer: Answer) -> None:
        """Record what is wrong with an answer, with the command that repeats it."""
        self.statuses[answer.status] += 1
        for fault in self._faults(request, answer):
            self.faults.append(
                f"request {request.number} ({request.seed.name}): {fault}\n{request.content[:600]!r}\n{answer}"
            )
        if not request.changed:
            self.controls += 1
            self.turned_away += answer.status == 503
        self._note(request, answer)

    def _faults(self, request: Request, answer: Answer) -> Iterable[str]:
        if answer.status >= 500 and answer.status != 503:
            yield f"status {answer.status}"
        if request.whole and not answer.status:
            yield "closed without an answer"
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if kind.endswith("json") and answer.status >= 400:
            yield from self._problem(answer, kind)
        elif answer.status >= 400 and kind == "text/plain" and answer.status not in _TEXT:
            yield "a refusal in plain text"
        page = request.seed.name.startswith(_PAGES)
        if (
            not request.changed
            and not page
            and answer.status not in {200, 303}
            and not self._used(request, answer)
        ):
            yield "the control was refused"
        if not request.head and not page and answer.status and kind != "text/plain":
            yield from self._contract(request, answer)

    def _used(self, request: Request, answer: Answer) -> bool:
        # A request on another merchant's order gets 404. Voids and captures are refused once nothing is left to void or
        # capture.
        known = {404, 503} if "stranger" in request.seed.name else {422, 429, 503}
        return answer.status in known

    def _problem(self, answer: Answer, kind: str) -> Iterable[str]:
        told = json.loads(answer.body)
        if kind == "application/json":
            wrong = self.contract.errors("#/components/schemas/TokenProblem", told)
        else:
            names = [
                name for name in self.contract.document["components"]["schemas"] if name.endswith("Problem")
            ]
            found = [self.contract.errors(f"#/components/schemas/{name}", told) for name in names]
            wrong = [] if [] in found else found[names.index("Problem")]
            if told.get("status") != answer.status or told.get("requestId") != answer.headers.get(
                "x-request-id"
            ):
                wrong = ["status or requestId is not the answer's"]
        if wrong:
            yield f"no problem of the contract: {wrong[:3]}"

    def _contract(self, request: Request, answer: Answer) -> Iterable[str]:
        target = request.content.split(b" ", 2)[1].decode("latin-1")
        try:
            self.contract.check(
                request.seed.method, target, answer.status, answer.headers, answer.body, request_body=None
            )
        except AssertionError as broken:
            yield f"{broken}"[:600]

    def _note(self, request: Request, answer: Answer) -> None:
        found = _MOVES.match(request.content)
        operation = request.seed.name.rpartition(" ")[2]
        if answer.status == 0 and operation in {"capture", "void", "refund"}:
            self.untold[request.seed.path, operation] += 1
        elif answer.status == 200 and found and b"dryRun" not in request.content.partition(b"\r\n")[0]:
            told: dict[str, Any] = json.loads(answer.body)
            self.applied[found[1].decode(), found[2].decode(), told["merchantReference"]] += 1
        elif answer.status in {200, 303} and b'"orderId"' in answer.body:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                self.created.add(json.loads(answer.body)["orderId"])


async def fire(port: int, requests: Iterable[Request], verdict: Verdict) -> None:
    """Send all requests, a few at a time, each on a new connection."""
    waiting = iter(requests)

    async def gun() -> None:
        for request in waiting:
            try:
                verdict.judge(request, await _shoot(port, request))
            except TimeoutError:
                verdict.faults.append(
                    f"request {request.number} ({request.seed.name}) hangs: {request.content[:600]!r}"
                )

    await asyncio.gather(*(gun() for _ in range(AT_ONCE)))


async def _shoot(port: int, request: Request) -> Answer:
    async with asyncio.timeout(HANG_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        try:
            with contextlib.suppress(ConnectionError):
                writer.write(request.content)
                await writer.drain()
            answer = asyncio.ensure_future(_answer(reader, head_only=request.content.startswith(b"HEAD ")))
            if not request.whole and request.number % 100:
                # The server would wait for the rest of an incomplete request. Only one in a hundred is left until its
                # timeout.
                await asyncio.wait({answer}, timeout=PATIENCE)
                if not answer.done():
                    with contextlib.suppress(ConnectionError, OSError):
                        writer.write_eof()
            return await answer
        finally:
            writer.transport.abort()


async def _answer(reader: asyncio.StreamReader, *, head_only: bool) -> Answer:
    try:
        return await read_answer(reader, head_only=head_only)
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
        return SILENT
