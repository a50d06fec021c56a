"""What one process takes on at a time. Asked once a request, before any work; what finds no place is refused.

A place is held until the event loop has gone round after the answer: what waits for one turn of the loop counts
together, were it only for bad tokens to be refused. A good token's merchant is a party; unknown tokens are one together,
and so is each open part of the service. Once a sixth of the places is taken, and not for a moment only, a party holds its
share at most, and three times the mean. The last quarter, or more, is not for new orders: what was begun is ended first.
"""

from __future__ import annotations

import asyncio
import time
from itertools import product

from starlette.types import Message, Receive, Scope

from cuota.web.parties import STRANGERS, Parties
from cuota.web.places import WINDOW, Places

_SDK = "/sdk/v1/checkouts"
_CREATIONS = {("GET", "/orders/authorize"), *product(["POST"], ("/order", "/checkouts", _SDK))}
_CREATIONS.add(("POST", "/orders/authorize"))
# They cost no more than a refusal would, and say how the service is.
_ALWAYS = {*product(("GET", "HEAD"), ("/health/live", "/health/ready", "/metrics"))}
_ALWAYS |= {("OPTIONS", _SDK), ("OPTIONS", f"{_SDK}/leave"), ("GET", "/sdk/v1/window")}


class Place:
    """What a request holds while it is worked on. `token` names one that is to be remembered, if it is good."""

    __slots__ = ("party", "since", "token")

    def __init__(self, party: str, token: int, since: float) -> None:
        self.party, self.token, self.since = party, token, since


FREE = Place("", 0, 0.0)


class Admission:
    """The places of one process."""

    def __init__(self) -> None:
        self.places = Places()
        self.parties = Parties()
        self.in_hand = 0
        self._held: dict[str, int] = {}
        self._left: list[str] = []
        # Who was let in in this window of time.
        self._seen: set[str] = set()
        self._count, self._window_ends = 1, 0.0
        # The fewest in hand in this window and in the one before: a burst goes, a queue stands.
        self._fewest, self._stood = 0, 0

    def enter(self, scope: Scope) -> Place | None:
        """A place for this request; None: it is to be refused, and nothing of it done."""
        asked = scope["method"], scope["path"]
        if asked in _ALWAYS:
            return FREE
        authorization = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        party, token = self.parties.of(asked[1], authorization)
        if self.refuses(asked, party, 0, 0):
            return None
        if (now := time.perf_counter()) >= self._window_ends:
            # What was before a rest says nothing.
            just = now < self._window_ends + WINDOW
            self._stood, self._fewest = self._fewest if just else 0, self.in_hand
            self._window_ends, self._count = now + WINDOW, max(len(self._seen), 1) if just else 1
            self._seen.clear()
        elif self.in_hand < self._fewest:
            self._fewest = self.in_hand
        self._seen.add(party)
        self.in_hand += 1
        self._held[party] = self._held.get(party, 0) + 1
        return Place(party, token, now)

    def patient(self, place: Place, receive: Receive) -> Receive:
        """`receive`, for the time of which the place is given up: a slow client keeps nobody out."""
        if place is FREE:
            return receive

        async def receive_on() -> Message:
            began = time.perf_counter()
            self._give([place.party])
            try:
                return await receive()
            finally:
                self._held[place.party] = self._held.get(place.party, 0) + 1
                self.in_hand += 1
                place.since += time.perf_counter() - began

        return receive_on

    def leave(self, place: Place, scope: Scope) -> None:
        """The request was answered, or its client has gone."""
        if place is FREE:
            return
        if not self._left:
            asyncio.get_running_loop().call_soon(self.gone_round)
        self._left.append(place.party)
        if "merchant_id" in scope:
            now = time.perf_counter()
            self.places.done(now - place.since, now)
            if place.token:
                self.parties.remember(place.token, str(scope["merchant_id"]))
                # It was no stranger after all, and is not to share with one.
                self._seen.discard(STRANGERS)
                self._count = max(len(self._seen), 1)

    def gone_round(self) -> None:
        """A turn of the loop is over: what was answered in it holds nothing any more."""
        self._give(self._left)

    def refuses(self, asked: tuple[str, str], party: str, coming: int, of_party: int) -> bool:
        """Whether there is no place; `coming` were let through in this turn of the loop and hold none yet."""
        in_hand, places = self.in_hand + coming, self.places.all
        if in_hand * 6 < places or asked in _ALWAYS:
            return False
        stands = self._stood * 12 >= places or in_hand * 2 >= places
        parties = max(self._count, len(self._seen))
        if in_hand >= places:
            why = "full"
        elif stands and (self._held.get(party, 0) + of_party) * parties >= min(
            places, 3 * (in_hand + parties)
        ):
            why = "share"
        elif in_hand >= self.places.for_new and asked in _CREATIONS:
            why = "creation"
        else:
            return False
        self.places.refused(why)
        return True

    def _give(self, parties: list[str]) -> None:
        self.in_hand -= len(parties)
        for party in parties:
            self._held[party] -= 1
            if not self._held[party]:
                del self._held[party]
        parties.clear()
