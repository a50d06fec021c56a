"""The HTTP protocol of one connection. It adds limits to uvicorn's: size, time, and number of pipelined requests.

A refusal here concerns an incomplete request, so nothing was applied. Earlier complete requests are answered first.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from cuota.web.body import ALLOW_BODY
from cuota.web.server.bounds import MOST_MESSAGE_BYTES, MOST_PIPELINED, PART_BYTES
from cuota.web.server.deadlines import (
    BODY_TICKS,
    ENDED,
    HEAD_TICKS,
    LINGER_TICKS,
    MOST_TURNED_AWAY,
    READ_TICKS,
    TICK_SECONDS,
    UPLOAD_TICKS,
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
    reset,
)
from cuota.web.server.refusing import RefusingProtocol


class _Enough(Exception):  # stops the parser: nothing more is read from this connection
    pass


class _Trailers(Exception):  # stops the parser: the request has trailers, which are refused
    pass


class BoundedProtocol(RefusingProtocol):
    """One connection."""

    url = b""
    _in_head = True  # waits for a head or reads one; otherwise reads a body
    _head_bytes = 0
    _message_bytes = 0
    _most_bytes, _body_ticks = MOST_MESSAGE_BYTES, BODY_TICKS  # for this body; `_allow_body` raises both
    _since = 0  # the tick at which this phase began: waiting, reading a head or a body, or closing
    _deaf = False  # reads nothing more, and closes when the earlier requests are answered
    _refused = _turned_away = False
    # The request that is being answered while others wait behind it. Without others it is `cycle`.
    _answering: RequestResponseCycle | None = None
    _held: tuple[RequestResponseCycle, ASGI3Application] | None = None
    # Bytes of answers that the client has not read yet, and the tick at which it last read something.
    _unread = _read_at = 0

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
        """Accept a connection, or refuse it before any work."""
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
            # The client gets the 503 when it sends something: an answer before the request would confuse clients.
            watch.turned_away.add(self)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection closed."""
        self._watch.turned_away.discard(self)
        if self._answering is not None:
            # uvicorn notifies only the newest request. The request that is being answered would continue to write.
            self._answering.disconnected = True
            self._answering.message_event.set()
        self.pipeline.clear()
        self._answering = self._held = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Prepare to stop: incomplete requests get a last deadline."""
        super().shutdown()
        self._watch.stop()

    def on_headers_complete(self) -> None:
        """Check the limits of a complete head, and start its request. `web/body` limits bodies."""
        if too_much := head_refusal(self.url, self.headers, self._head_bytes):
            self._refuse(too_much)
            raise _Enough
        if not self._refused_at_once():
            self._begin_request()
        self._in_head, self._message_bytes, self._since = False, 0, self._watch.ticks
        self._most_bytes, self._body_ticks = MOST_MESSAGE_BYTES, BODY_TICKS
        # The parser also reports trailers as headers. They must not be added to the head of this request.
        self.headers = []

    def _begin_request(self) -> None:
        """Start the request whose head is complete, or queue it behind the earlier requests of this connection."""
        before = self.cycle
        super().on_headers_complete()
        if self.scope["method"] != "GET":
            self.cycle.transport = Lingering(self)  # type: ignore[assignment]
        if len(self.pipeline) == 1:
            self._answering = before
        self.scope[ALLOW_BODY] = self._allow_body  # type: ignore[literal-required]

    def _allow_body(self, most: int) -> None:
        """Allow the current request a body of `most` bytes, and more time. Call this only for an authenticated sender."""
        self._most_bytes, self._body_ticks = most + MOST_MESSAGE_BYTES, UPLOAD_TICKS

    def on_message_complete(self) -> None:
        """Note that a request is complete, and expect the head of the next one."""
        if self.headers:
            raise _Trailers
        super().on_message_complete()
        self._in_head, self._head_bytes, self._since = True, 0, self._watch.ticks
        if len(self.pipeline) >= MOST_PIPELINED:
            ENDED.labels("pipelined").inc()
            self._end()
            raise _Enough

    def on_response_complete(self) -> None:
        """Continue with the next request, as in uvicorn. There is no timer here: the watch ends idle connections."""
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
        """Start a request now, or after the client has read earlier answers. Drop it if the client has disconnected."""
        if self.flow.write_paused:
            self._held = cycle, app
        elif not cycle.disconnected:
            super()._start_asgi_task(cycle, expecting(cycle, app) if cycle.waiting_for_100_continue else app)

    def resume_writing(self) -> None:
        """Start the request that was held back until the client read earlier answers."""
        super().resume_writing()
        if self._held is not None:
            held, self._held = self._held, None
            self._start_asgi_task(*held)

    def data_received(self, data: bytes) -> None:
        """Give received bytes to the parser, up to the limits. This is the fast path: a short head in one piece."""
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
        """Give the parser long input or bytes of a body, in parts, and check the limits before each part."""
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
                if self._message_bytes > self._most_bytes:
                    self._refuse(TOO_LONG)
                    return
            part, data = data[:most], data[most:]
            self._feed(part)

    def _feed(self, part: bytes) -> None:
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade:
            # The parser treats everything after this request's head as another protocol, so it cannot read more requests.
            self._end()
        except httptools.HttpParserError:
            if not self._deaf:
                self._refuse(UNREADABLE)

    def judge(self) -> None:
        """End the connection if it exceeded a timeout. `Watch` calls this at every tick."""
        watch, transport = self._watch, self.transport
        unread = transport.get_write_buffer_size()
        if not unread or unread < self._unread:
            self._read_at = watch.ticks
        elif watch.late(self._read_at, READ_TICKS):
            ENDED.labels("unread").inc()
            reset(transport)
            return
        self._unread = unread
        if transport.is_closing():
            return
        cycle = self.cycle
        if self._deaf:
            # If a body was refused while earlier requests were being answered, its request gets no answer.
            finished = cycle is None or cycle.response_complete or cycle.disconnected
            if finished and not self.pipeline and watch.late(self._since, LINGER_TICKS):
                transport.close()
        elif cycle is None or cycle.response_complete:
            self._judge_sending()
        elif not self._in_head and not self.pipeline and watch.late(self._since, self._body_ticks):
            self._refuse(LATE_BODY if watch.ticks <= watch.last else STOPPING)

    def _judge_sending(self) -> None:
        """Check the timeouts of a connection on which no request is being answered."""
        watch, cycle = self._watch, self.cycle
        if not self._in_head:  # the request was answered before its body was complete
            if watch.late(self._since, self._body_ticks):
                self._refuse(LATE_BODY)
        elif self._head_bytes or (cycle is not None and self.scope is not cycle.scope):
            # The second condition is true if this head began in the same packet as the end of another request.
            if watch.late(self._since, HEAD_TICKS):
                self._refuse(LATE_HEAD)
        elif watch.late(self._since, HEAD_TICKS if cycle is None else self._idle_ticks):
            # Send no message: if a request is already on its way, the client would mistake the message for its answer.
            ENDED.labels("silent" if cycle is None else "idle").inc()
            self.transport.close()

    def _refuse(self, refusal: Refusal) -> None:
        """Send the reason and close. Send nothing if the client would mistake the reason for the answer to another request."""
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
            # The handler that waits for the body sees a disconnected client.
            self._deaf, self._since = True, self._watch.ticks
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
            if not self.pipeline:
                self._say(refusal)

    def _say(self, refusal: Refusal) -> None:
        """Send the last answer of this connection."""
        self._deaf = self._refused = True
        self._since = self._watch.ticks
        self.transport.write(answer_of(refusal, self.server_state.default_headers))
        self.transport.write_eof()

    def linger(self) -> None:
        """Close a moment after an early answer. Closing at once would send a TCP reset, which could overtake the answer."""
        self._deaf, self._since = True, self._watch.ticks
        self.flow.resume_reading()
        self.transport.write_eof()

    def _end(self) -> None:
        """Stop reading. The answer to the last accepted request has `Connection: close`."""
        self._deaf, self._since = True, self._watch.ticks
        self.cycle.keep_alive = False
