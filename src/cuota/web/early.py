"""Refusing what finds no place before it is even parsed: a third of what it costs in `edge`, and most of a flood.

What is whole, plain and at the beginning of a message is answered here with the very words of `edge`; everything else
goes the usual way, and is refused there.
"""

from __future__ import annotations

import asyncio
import re

from cuota.web.admission import ALWAYS
from cuota.web.edge import BUSY, Edge, Headers
from cuota.web.problem import MEDIA_TYPE, body_of
from cuota.web.protocol import BoundedProtocol
from cuota.web.request_id import new_request_id

# Nothing that the parser would not take, or another server might read otherwise: a line feed alone, a folded line, a
# space before a colon. What is refused here keeps its connection, and what follows must be the next request to all.
_HEAD = re.compile(
    rb"(DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT) (/[A-Za-z0-9/._-]*)(?:\?[!-~]*)? HTTP/1\.1\r\n"
    rb"(?:[!#-'*+.^_`|~0-9A-Za-z-]++:[\t -~\x80-\xff]*+\r\n)++\r\n"
)
# Their refusals are of other forms.
_OTHER_FORM = ("/checkout/", "/account", "/sdk/", "/oauth/", "/orders/")
RETRY_AFTER = BUSY.retry_after or 1
_PATH, _ID = "/0path0", "0id0"


class Gate:
    """One process's. It counts what comes in a turn of the loop, since that takes its places only later in the turn."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._admission = edge.admission
        self._armed, self._coming, self._open = False, 0, 0
        self._by_party: dict[str, int] = {}
        self._words = self._template()
        self._more: Headers = []
        self._head = b""

    def _template(self) -> tuple[bytes, bytes, bytes, int]:
        """The body around its path and request id, and its length without them."""
        body = body_of(BUSY, public_url=self._edge.public_url, path=_PATH, request_id=_ID)
        before, rest = body.split(_PATH.encode())
        between, after = rest.split(_ID.encode())
        return before, between, after, len(before + between + after)

    def refusal(self, data: bytes, more: Headers) -> bytes | None:
        """The whole answer, where these bytes are a request that finds no place. `more` headers are the server's."""
        if not self._armed:
            self._armed = True
            self._admission.gone_round()
            asyncio.get_running_loop().call_soon(self._turn_over)
        in_hand, places = self._admission.in_hand + self._coming, self._admission.places.all
        if in_hand * 6 < places or self._edge.draining:
            self._coming += 1
            return None
        # From here on nothing is counted that may come to hold no place: it would keep others out in vain.
        line = _HEAD.match(data)
        if line is None:
            return None
        path = line[2].decode()
        head = _plain(data, line.end())
        if head is None or path.startswith(_OTHER_FORM) or (path[-1] == "/" and len(path) > 1):
            return None
        at = head.find(b"\r\nauthorization:")
        value = data[at + 16 : head.find(b"\r\n", at + 16)].strip(b" \t") if at > 0 else None
        party, _ = self._admission.parties.of(path, value)
        of_party = self._by_party.get(party, 0)
        asked = line[1].decode(), path
        if asked in ALWAYS:
            return None
        if not self._admission.refuses(asked, party, self._coming, of_party, self._open):
            self._coming += 1
            self._open += self._admission.parties.is_open(party)
            self._by_party[party] = of_party + 1
            return None
        return self._answer(line[2], new_request_id().encode(), more, head_only=asked[0] == "HEAD")

    def _turn_over(self) -> None:
        self._armed, self._coming, self._open = False, 0, 0
        self._by_party.clear()

    def _answer(self, path: bytes, request_id: bytes, more: Headers, *, head_only: bool) -> bytes:
        if more is not self._more or not self._head:
            # The server makes its headers anew every second.
            self._more, given = (
                more,
                [(b"content-type", MEDIA_TYPE.encode()), (b"retry-after", b"%d" % RETRY_AFTER)],
            )
            own = self._edge.headers("", "")
            lines = (
                b"%b: %b\r\n" % header for header in (*more, *given, *own) if header[0] != b"x-request-id"
            )
            self._head = b"HTTP/1.1 503 Service Unavailable\r\n" + b"".join(lines)
        before, between, after, length = self._words
        named = b"x-request-id: %b\r\ncontent-length: %d\r\n\r\n" % (
            request_id,
            length + len(path) + len(request_id),
        )
        body = () if head_only else (before, path, between, request_id, after)
        return b"".join((self._head, named, *body))


def _plain(data: bytes, end: int) -> bytes | None:
    """The head, which ends there, in lower case, where these bytes are one request, whole and nothing more."""
    head = data[:end].lower()
    # With these a message may end elsewhere, or the connection with it.
    if b"transfer-encoding" in head or b"upgrade" in head or b"expect" in head:
        return None
    if head.count(b"\r\nhost:") != 1:
        return None
    if b"connection:" in head and (
        head.count(b"connection:") > 1 or b"\r\nconnection: keep-alive\r\n" not in head
    ):
        return None
    length = 0
    if b"content-length" in head:
        at = head.find(b"\r\ncontent-length: ") + 18
        digits = head[at : head.find(b"\r", at)]
        if at < 18 or not digits.isdigit() or len(digits) > 7 or head.count(b"content-length") != 1:
            return None
        length = int(digits)
    return head if len(data) == end + length else None


class EarlyProtocol(BoundedProtocol):
    """A connection that asks the gate of its process first."""

    gate: Gate

    def data_received(self, data: bytes) -> None:
        """Answer at once what finds no place; hand on the rest."""
        cycle = self.cycle
        at_rest = (
            self.scope is None if cycle is None else cycle.response_complete and self.scope is cycle.scope
        )
        if at_rest and self._in_head and not self._head_bytes and not (self._deaf or self.flow.write_paused):
            answer = self.gate.refusal(data, self.server_state.default_headers)
            if answer is not None:
                self._since = self._watch.ticks
                self.transport.write(answer)
                return
        super().data_received(data)


def early(edge: Edge) -> type[EarlyProtocol]:
    """The protocol of the connections of this application."""
    return type("Early", (EarlyProtocol,), {"gate": Gate(edge)})
