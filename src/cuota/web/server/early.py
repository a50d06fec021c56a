"""Refusing what finds no place before it is even parsed: a third of what it costs in `edge`, and most of a flood.

What is whole, plain and at the beginning of a message is answered here with the very words of `edge`; everything else
goes the usual way, and is refused there.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from cuota.web.problem import MEDIA_TYPE, body_of
from cuota.web.server.admission import ALWAYS, CREATIONS
from cuota.web.server.edge import BUSY, Edge, Headers
from cuota.web.server.parties import name_of
from cuota.web.server.protocol import BoundedProtocol
from cuota.web.server.request_id import new_request_id

# Nothing that the parser would not take, or another server might read otherwise: a line feed alone, a folded line, a
# space before a colon. What is refused here keeps its connection, and what follows must be the next request to all.
_LINE = re.compile(
    rb"(DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT) (/[A-Za-z0-9/._-]*)(?:\?[!-~]*)? HTTP/1\.1\r\n"
)
_FIELDS = re.compile(rb"(?:[!#-'*+.^_`|~0-9A-Za-z-]++:[\t -~\x80-\xff]*+\r\n)++\r\n")
# Of so many callers it is remembered what their header fields say.
MOST_REMEMBERED = 20_000
# Their refusals are of other forms.
_OTHER_FORM = ("/checkout/", "/account", "/sdk/", "/oauth/", "/orders/")
RETRY_AFTER = BUSY.retry_after or 1
_PATH, _ID = "/0path0", "0id0"


class Heads:
    """What header fields say. A caller sends the same ones again and again: they are looked at once.

    They hold tokens, and are not kept: what tells them apart is a number of 64 bits with this process's own key in it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int] | None] = {}

    def request_in(self, data: bytes) -> tuple[str, str, int] | None:
        """Method, path and the token's name, where these bytes are one request, plain, whole and nothing more."""
        line = _LINE.match(data)
        if line is None:
            return None
        start = line.end()
        end = data.find(b"\r\n\r\n", start) + 4
        fields = data[start:end]
        name = hash(fields)
        try:
            said = self._known[name]
        except KeyError:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            said = self._known[name] = _plain(fields)
        if said is None or len(data) != end + said[1]:
            return None
        return line[1].decode(), line[2].decode(), said[0]


class Gate:
    """One process's. It counts what comes in a turn of the loop, since that takes its places only later in the turn."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._admission = edge.admission
        self._armed, self._coming, self._open = False, 0, 0
        self._by_party: dict[str, int] = {}
        self._heads = Heads()
        # Who was refused in this turn for old or new orders, where that lasts until the turn is over: why, and how often
        # since. A share may still grow with what others bring.
        self._refused: dict[tuple[str, bool], str] = {}
        self._more_refused: Counter[tuple[str, bool]] = Counter()
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
        asked = self._heads.request_in(data)
        if asked is None:
            return None
        method, path, token = asked
        if path.startswith(_OTHER_FORM) or (path[-1] == "/" and len(path) > 1) or (method, path) in ALWAYS:
            return None
        party = self._admission.parties.of(path, token)
        if not self._is_refused(party, creates=(method, path) in CREATIONS):
            return None
        return self._answer(path.encode(), new_request_id().encode(), more, head_only=method == "HEAD")

    def _is_refused(self, party: str, *, creates: bool) -> bool:
        kind = party, creates
        if kind in self._refused:
            self._more_refused[kind] += 1
            return True
        of_party = self._by_party.get(party, 0)
        why = self._admission.why_not(party, self._coming, of_party, self._open, creates=creates)
        if why:
            self._admission.refused(why, party, creates=creates)
            if why != "share":
                self._refused[kind] = why
            return True
        self._coming += 1
        self._open += self._admission.parties.is_open(party)
        self._by_party[party] = of_party + 1
        return False

    def _turn_over(self) -> None:
        self._armed, self._coming, self._open = False, 0, 0
        self._by_party.clear()
        for (party, creates), count in self._more_refused.items():
            self._admission.refused(self._refused[party, creates], party, count, creates=creates)
        self._refused.clear()
        self._more_refused.clear()

    def _answer(self, path: bytes, request_id: bytes, more: Headers, *, head_only: bool) -> bytes:
        if more is not self._more or not self._head:
            # The server makes its headers anew every second.
            self._more = more
            given = ((b"content-type", MEDIA_TYPE.encode()), (b"retry-after", b"%d" % RETRY_AFTER))
            every = (*more, *given, *self._edge.headers("", ""))
            lines = (b"%b: %b\r\n" % header for header in every if header[0] != b"x-request-id")
            self._head = b"HTTP/1.1 503 Service Unavailable\r\n" + b"".join(lines)
        before, between, after, length = self._words
        size = length + len(path) + len(request_id)
        named = b"x-request-id: %b\r\ncontent-length: %d\r\n\r\n" % (request_id, size)
        body = () if head_only else (before, path, between, request_id, after)
        return b"".join((self._head, named, *body))


def _plain(fields: bytes) -> tuple[int, int] | None:
    """The token's name and the length of the body, where it is sure from these lines where the request ends."""
    if _FIELDS.fullmatch(fields) is None:
        return None
    head = b"\r\n" + fields.lower()
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
    at = head.find(b"\r\nauthorization:") + 14  # `fields` begins two bytes behind `head`
    return name_of(fields[at : fields.find(b"\r\n", at)] if at >= 14 else None), length


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
