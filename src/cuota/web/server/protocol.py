"""The HTTP protocol of a connection, with the bounds that uvicorn lacks: of size, of time, of number.

What is refused here is refused before there is a request, or while its body is still on the way: nothing was applied.
A request that is whole is never touched: it is answered, and then the connection ends.
"""

from __future__ import annotations

import asyncio
import struct
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from cuota.web.server.deadlines import (
    BODY_TICKS,
    ENDED,
    HEAD_TICKS,
    LINGER_TICKS,
    MOST_TURNED_AWAY,
    READ_TICKS,
    TICK_SECONDS,
    watch_of,
)
from cuota.web.server.expectation import expecting
from cuota.web.server.head import Lingering, head_refusal
from cuota.web.server.last_word import (
    FULL,
    LATE_BODY,
    LATE_HEAD,
    LONG_URL,
    MOST_HEAD_BYTES,
    MOST_URL_BYTES,
    STOPPING,
    TOO_LARGE,
    TOO_LONG,
    UNREADABLE,
    Refusal,
    answer_of,
)

# On the wire, behind the head: eight times the largest body (`web/body`), room for one that comes byte by byte
# in chunks, and none for endless chunk extensions and trailers.
MOST_MESSAGE_BYTES = 2 * 1024 * 1024
# Requests that were sent ahead of the answer to an earlier one. The last of them closes; the client sends the rest again.
MOST_PIPELINED = 8
# The parser is fed so much at a time: whatever one read brought, a bound is at most so far away.
PART_BYTES = 16 * 1024

_AT_ONCE = struct.pack("ii", 1, 0)


class _Enough(Exception):
    pass


class _Trailers(Exception):
    pass


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Its message is in the head or behind it; `_since` is when that began, by the server's watch."""

    url = b""
    _in_head = True
    _head_bytes = 0
    _message_bytes = 0
    _since = 0
    # Nothing that still comes is read: the connection ends once what was asked before is answered.
    _deaf = False
    _refused = False
    _turned_away = False
    # Which request is being answered, where others wait behind it; otherwise it is `cycle`.
    _answering: RequestResponseCycle | None = None
    _held: tuple[RequestResponseCycle, ASGI3Application] | None = None
    # Of what was answered: what the peer has not taken yet, and when it last took something.
    _unread = 0
    _read_at = 0

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._watch = watch_of(server_state, self.loop)
        self._idle_ticks = int(config.timeout_keep_alive / TICK_SECONDS)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away, before any work."""
        watch = self._watch
        self._since = self._read_at = watch.ticks
        watch.begin()
        if len(self.connections) < watch.most_open:
            super().connection_made(transport)
            return
        ENDED.labels(FULL.reason).inc()
        self.transport = transport
        self._deaf = self._turned_away = True
        if len(watch.turned_away) < MOST_TURNED_AWAY:
            # Told once it asks something: an answer ahead of the question confuses clients.
            watch.turned_away.add(self)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._watch.turned_away.discard(self)
        if self._answering is not None:
            # uvicorn tells the newest request only: the one that is being answered would write to what is closed.
            self._answering.disconnected = True
            self._answering.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The process stops."""
        super().shutdown()
        self._watch.stop()

    def on_headers_complete(self) -> None:
        """The head is over; bodies have their own limit (`web/body`)."""
        if too_much := head_refusal(self.url, self.headers, self._head_bytes):
            self._refuse(too_much)
            raise _Enough
        before = self.cycle
        super().on_headers_complete()
        if self.scope["method"] != "GET":
            self.cycle.transport = Lingering(self)  # type: ignore[assignment]
        if len(self.pipeline) == 1:
            self._answering = before
        self._in_head, self._message_bytes, self._since = False, 0, self._watch.ticks
        # What the parser still reads as a header is a trailer, and no line of the head of a request under way.
        self.headers = []

    def on_message_complete(self) -> None:
        """The request is whole: what comes now is the head of another."""
        if self.headers:
            raise _Trailers
        super().on_message_complete()
        self._in_head, self._head_bytes, self._since = True, 0, self._watch.ticks
        if len(self.pipeline) >= MOST_PIPELINED:
            ENDED.labels("pipelined").inc()
            self._end()
            raise _Enough

    def on_response_complete(self) -> None:
        """As uvicorn's, without the timer that it sets and cancels for each answer: the watch sees who is idle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._answering, app = self.pipeline.pop()
            self._start_asgi_task(self._answering, app)
        elif not self._head_bytes:
            self._since = self._watch.ticks

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Nothing is begun for whoever has not read what was answered before, or has been refused since."""
        if self.flow.write_paused:
            self._held = cycle, app
        elif not cycle.disconnected:
            super()._start_asgi_task(cycle, expecting(cycle, app) if cycle.waiting_for_100_continue else app)

    def resume_writing(self) -> None:
        """The peer reads again."""
        super().resume_writing()
        if self._held is not None:
            held, self._held = self._held, None
            self._start_asgi_task(*held)

    def data_received(self, data: bytes) -> None:
        """Feed the parser no more of a request than it may have."""
        size = len(data)
        if self._in_head and self._head_bytes + size <= PART_BYTES and not self._deaf:
            if not self._head_bytes:
                self._since = self._watch.ticks
            self._head_bytes += size
            self._feed(data)
        elif self._turned_away and not self._refused:
            self._say(FULL)
        else:
            self._part(data)

    def _part(self, data: bytes) -> None:
        """The same, of much at a time or of a body."""
        while data and not self._deaf:
            if self._in_head:
                most = min(PART_BYTES, MOST_HEAD_BYTES - self._head_bytes)
                if not most:
                    self._refuse(LONG_URL if len(self.url) > MOST_URL_BYTES else TOO_LARGE)
                    return
                self._since = self._since if self._head_bytes else self._watch.ticks
                self._head_bytes += min(most, len(data))
            else:
                most = PART_BYTES
                self._message_bytes += min(most, len(data))
                if self._message_bytes > MOST_MESSAGE_BYTES:
                    self._refuse(TOO_LONG)
                    return
            part, data = data[:most], data[most:]
            self._feed(part)

    def _feed(self, part: bytes) -> None:
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade:
            # The parser takes what follows for the other protocol, a body too: nothing behind this can be told apart.
            self._end()
        except httptools.HttpParserError:
            if not self._deaf:
                self._refuse(UNREADABLE)

    def judge(self) -> None:
        """Once a tick: end what is late."""
        watch, transport = self._watch, self.transport
        unread = transport.get_write_buffer_size()
        if not unread or unread < self._unread:
            self._read_at = watch.ticks
        elif watch.late(self._read_at, READ_TICKS):
            ENDED.labels("unread").inc()
            # With a reset: the system would keep what nobody reads, and go on asking whether it may send it.
            transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _AT_ONCE)
            transport.abort()
            return
        self._unread = unread
        if transport.is_closing():
            return
        cycle = self.cycle
        if self._deaf:
            # A body that was refused while earlier requests were answered leaves a request that nobody answers.
            gone = cycle is None or cycle.response_complete or cycle.disconnected
            if gone and not self.pipeline and watch.late(self._since, LINGER_TICKS):
                transport.close()
        elif cycle is None or cycle.response_complete:
            self._judge_sending()
        elif not self._in_head and not self.pipeline and watch.late(self._since, BODY_TICKS):
            self._refuse(LATE_BODY if watch.ticks <= watch.last else STOPPING)

    def _judge_sending(self) -> None:
        """Nothing is being answered: the peer sends, or is idle."""
        watch, cycle = self._watch, self.cycle
        if not self._in_head:  # a body that was answered before it was whole
            if watch.late(self._since, BODY_TICKS):
                self._refuse(LATE_BODY)
        elif self._head_bytes or (cycle is not None and self.scope is not cycle.scope):
            # The second: its first bytes came behind another request, in one packet.
            if watch.late(self._since, HEAD_TICKS):
                self._refuse(LATE_HEAD)
        elif watch.late(self._since, HEAD_TICKS if cycle is None else self._idle_ticks):
            # It asks nothing. A word would be taken for the answer to what it may be sending just now.
            ENDED.labels("silent" if cycle is None else "idle").inc()
            self.transport.close()

    def _refuse(self, refusal: Refusal) -> None:
        """Say why and end; where the word would be read as the answer to something else, only end."""
        ENDED.labels(refusal.reason).inc()
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            if self._in_head:
                self._say(refusal)
            else:
                self._deaf = True
                self.transport.close()
        elif self._in_head or cycle.response_started:
            self._end()
        else:
            # Its body is never handed on: who waits for it is told that the client has gone.
            self._deaf, self._since = True, self._watch.ticks
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
            if not self.pipeline:
                self._say(refusal)

    def _say(self, refusal: Refusal) -> None:
        """The last answer of this connection."""
        self._deaf = self._refused = True
        self._since = self._watch.ticks
        self.transport.write(answer_of(refusal, self.server_state.default_headers))
        self.transport.write_eof()

    def linger(self) -> None:
        """End after an answer that came before the whole body. A reset at once could overtake the answer."""
        self._deaf, self._since = True, self._watch.ticks
        self.flow.resume_reading()
        self.transport.write_eof()

    def _end(self) -> None:
        """Hear no more; the last request that was taken says so with its answer, and closes."""
        self._deaf, self._since = True, self._watch.ticks
        self.cycle.keep_alive = False
