"""What one process takes on at a time. Asked once a request, before any work; what finds no place is refused.

A place is held until the event loop has gone round after the answer: what waits for one turn of the loop counts
together, were it only for bad tokens to be refused. A good token's merchant is a party; unknown tokens are one together,
and so is each open part of the service. Once a sixth of the places is taken, and not for a moment only, a party holds its
share at most, and three times the mean; all who show no good token hold half at most while a merchant asks. The last
quarter, or more, is not for new orders: what was begun is ended first.
"""

from __future__ import annotations

import asyncio
import time
from itertools import product

from starlette.types import Message, Receive, Scope

from cuota.web.server.parties import STRANGERS, Parties, name_of
from cuota.web.server.places import WINDOW, AdmissionSlots
from cuota.web.server.token_client import client_of_token

_SDK = "/sdk/v1/checkouts"
CREATIONS = {("GET", "/orders/authorize"), *product(["POST"], ("/order", "/checkouts", _SDK))}
CREATIONS.add(("POST", "/orders/authorize"))
# They cost no more than a refusal would, and say how the service is.
ALWAYS = {*product(("GET", "HEAD"), ("/health/live", "/health/ready", "/metrics"))}
ALWAYS |= {("OPTIONS", _SDK), ("OPTIONS", f"{_SDK}/leave"), ("GET", "/sdk/v1/window")}
# Seconds. Longer than the second after which who was refused is told to come again.
PUT_OFF = 1.5


class AdmissionSlot:
    """What a request holds while it is worked on. `token` names the one it showed; 0 for none."""

    __slots__ = ("party", "since", "token")

    def __init__(self, party: str, token: int, since: float) -> None:
        self.party, self.token, self.since = party, token, since


FREE = AdmissionSlot("", 0, 0.0)


class Admission:
    """The places of one process."""

    def __init__(self) -> None:
        self.places = AdmissionSlots()
        self.parties = Parties()
        self.in_hand = 0
        self._held: dict[str, int] = {}
        self._left: list[str] = []
        # Who came in this window of time.
        self._seen: set[str] = set()
        self._count, self._window_ends = 1, 0.0
        # Who was refused, and is to come again in a second: its share is kept, or a flood would be alone by then.
        self._put_off: set[str] = set()
        self._put_off_before: set[str] = set()
        self._put_off_ends = 0.0
        # The fewest in hand in this window and in the one before: a burst goes, a queue stands.
        self._fewest, self._stood = 0, 0

    @property
    def crowded(self) -> bool:
        """Whether shares count at all just now."""
        return self.in_hand * 6 >= self.places.all

    def enter(self, scope: Scope) -> AdmissionSlot | None:
        """A place for this request; None: it is to be refused, and nothing of it done."""
        asked = scope["method"], scope["path"]
        if asked in ALWAYS:
            return FREE
        authorization = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        token = 0 if asked[1].startswith("/checkout/") else name_of(authorization)
        client = scope.get("token_client")
        party = self.parties.client(client) if client else self.parties.of(asked[1], token)
        creates = asked in CREATIONS
        if why := self.why_not(party, 0, 0, creates=creates):
            self.refused(why, party, creates=creates)
            return None
        if (now := time.perf_counter()) >= self._window_ends:
            # What was before a rest says nothing.
            just = now < self._window_ends + WINDOW
            self._stood, self._fewest = self._fewest if just else 0, self.in_hand
            self._window_ends = now + WINDOW
            if not just:
                self._seen.clear()
            if now >= self._put_off_ends:
                before = self._put_off if now < self._put_off_ends + PUT_OFF else set()
                self._put_off_before, self._put_off, self._put_off_ends = before, set(), now + PUT_OFF
            self._count_parties()
            self._seen.clear()
            self.places.moved_on()
        elif self.in_hand < self._fewest:
            self._fewest = self.in_hand
        self._seen.add(party)
        self.in_hand += 1
        self._held[party] = self._held.get(party, 0) + 1
        return AdmissionSlot(party, token, now)

    def patient(self, place: AdmissionSlot, receive: Receive) -> Receive:
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

    def leave(self, place: AdmissionSlot, scope: Scope, status: int = 0) -> None:
        """The request was answered so, or its client has gone."""
        if place is FREE:
            return
        if not self._left:
            asyncio.get_running_loop().call_soon(self.gone_round)
        self._left.append(place.party)
        if "client_good" in scope:
            self.parties.remember_client(scope["client_good"])
        if "merchant_id" in scope:
            now = time.perf_counter()
            self.places.done(now - place.since, now)
            if "token_good" in scope and place.party == STRANGERS:
                self.parties.remember(place.token, str(scope["merchant_id"]))
                if client := client_of_token(scope["headers"]):
                    self.parties.remember_client(client)
                # It was no stranger after all, and is not to share with one.
                for parties in (self._seen, self._put_off, self._put_off_before):
                    parties.discard(STRANGERS)
                self._seen.add(str(scope["merchant_id"]))
                self._count_parties()
        elif status == 401 and place.token:
            self.parties.forget(place.token)

    def _count_parties(self) -> None:
        self._count = max(len(self._seen | self._put_off | self._put_off_before), 1)

    def gone_round(self) -> None:
        """A turn of the loop is over: what was answered in it holds nothing any more."""
        self._give(self._left)

    def why_not(self, party: str, coming: int, of_party: int, of_open: int = 0, *, creates: bool) -> str:
        """Why there is no place; empty where there is one. `creates`: it is for a new order.

        `coming` were let through in this turn of the loop and hold none yet, so many of them of this party and of open ones.
        """
        in_hand, places = self.in_hand + coming, self.places.all
        if in_hand * 6 < places:
            return ""
        if in_hand >= places:
            return "full"
        stands = self._stood * 12 >= places or in_hand * 2 >= places
        parties = max(self._count, len(self._seen))
        if stands and (
            (self._held.get(party, 0) + of_party) * parties >= min(places, 3 * (in_hand + parties))
            or (self.parties.is_open(party) and self._open_hold_half(of_open))
        ):
            return "share"
        return "creation" if creates and in_hand >= self.places.for_new else ""

    def refused(self, why: str, party: str, count: int = 1, *, creates: bool) -> None:
        """So many were refused for this reason."""
        self.places.refused(why, count, begun=not creates and self.parties.is_merchant(party))
        # Counted among the parties, or the shares would be made as if only those existed who have the places.
        self._seen.add(party)
        self._put_off.add(party)

    def _open_hold_half(self, coming: int) -> bool:
        """Whether all who show no good token have half the places, while a merchant asks too."""
        is_open = self.parties.is_open
        held = coming + sum(held for party, held in self._held.items() if is_open(party))
        if held * 2 < self.places.all:
            return False
        return not all(map(is_open, (*self._seen, *self._put_off, *self._put_off_before)))

    def _give(self, parties: list[str]) -> None:
        self.in_hand -= len(parties)
        for party in parties:
            self._held[party] -= 1
            if not self._held[party]:
                del self._held[party]
        parties.clear()
