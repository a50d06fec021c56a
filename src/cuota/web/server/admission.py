"""Admission control: how many requests one process works on at a time, and which requests it refuses.

Each request is judged before any work on it. An admitted request holds a place; a refused one is answered 503.

- A request keeps its place until the end of the event loop's turn in which it was answered, but holds none while its body
  arrives. Otherwise a flood of bad tokens, each refused at once, would never hold more than one place.
- Places are shared between parties (`parties.py`): a merchant whose token was valid before, that merchant's consumers, a
  known OAuth client, all unknown tokens together, and each open part of the service.
- Shares apply once a sixth of the places is taken and a queue has lasted, or once half of the places are taken. A party is
  then refused if it holds an equal share of the places, or about three times the average number that a party holds. While
  a known merchant, its consumers or a known OAuth client sends requests, all other parties together hold at most half.
- The last quarter of the places, or more, is closed to new orders, so that existing orders can be captured, voided and
  refunded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.types import Message, Receive, Scope

from cuota.web.server.parties import STRANGERS, Parties, name_of
from cuota.web.server.places import WINDOW, AdmissionSlots
from cuota.web.server.route import PathParams, Route
from cuota.web.server.token_client import client_of_token

# A refused client is told to come back after this many seconds (the Retry-After header).
RETRY_AFTER = 1
# For this many seconds a refused party still counts when the shares are computed.
PUT_OFF = 1.5
assert PUT_OFF > RETRY_AFTER, (
    "a refused party that obeys Retry-After must still have its share when it retries"
)
assert PUT_OFF > WINDOW, (
    "a refused party must be remembered for longer than the window in which it was refused"
)


class AdmissionSlot:
    """The place that one request holds. `token` identifies the request's access token (0: no token).

    `since` is the time of admission in seconds, on the clock of `Admission`.
    """

    __slots__ = ("party", "since", "token")

    def __init__(self, party: str, token: int, since: float) -> None:
        self.party, self.token, self.since = party, token, since


# The place of a request on a route that is always answered. It counts for no party.
FREE = AdmissionSlot("", 0, 0.0)


class Admission:
    """Admits or refuses the requests of one process. `clock` returns seconds and never goes backward."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.places = AdmissionSlots()
        self.parties = Parties()
        self.in_hand = 0
        self._clock = clock
        # Places held, by party.
        self._held: dict[str, int] = {}
        # The parties of the requests that were answered in this turn of the event loop.
        self._left: list[str] = []
        # The parties that sent a request in this window of time.
        self._seen: set[str] = set()
        self._count, self._window_ends = 1, 0.0
        # The parties that were refused in this period of PUT_OFF seconds, and in the period before. They keep their
        # shares for that time. Without these shares, a flood would look like the only party when the refused parties
        # retry, and would get every place.
        self._put_off: set[str] = set()
        self._put_off_before: set[str] = set()
        self._put_off_ends = 0.0
        # The lowest number of requests in progress: `_fewest` is the lowest of this window so far, `_stood` the lowest
        # of the window before. A short burst raises them only for a moment; a lasting queue keeps them high.
        self._fewest, self._stood = 0, 0

    @property
    def crowded(self) -> bool:
        """Return whether at least a sixth of the places is taken. Only then may admission refuse requests."""
        return self.in_hand * 6 >= self.places.all

    def refuses(self, route: Route, method: str, params: PathParams, authorization: bytes | None) -> bool:
        """Return whether this request must be refused now, and count the refusal.

        After False, `enter` judges the request again.
        """
        return not route.always and self._judge(route, method, params, authorization)[0]

    def enter(self, scope: Scope) -> AdmissionSlot | None:
        """Return a place for this request, or None if the request must be refused before any work is done."""
        route: Route = scope["route"]
        if route.always:
            return FREE
        authorization = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        client = scope.get("token_client")
        refused, party, token = self._judge(
            route, scope["method"], scope["path_params"], authorization, client
        )
        if refused:
            return None
        if (now := self._clock()) >= self._window_ends:
            self._begin_window(now)
        elif self.in_hand < self._fewest:
            self._fewest = self.in_hand
        self._seen.add(party)
        self.in_hand += 1
        self._held[party] = self._held.get(party, 0) + 1
        return AdmissionSlot(party, token, now)

    def _judge(
        self,
        route: Route,
        method: str,
        params: PathParams,
        authorization: bytes | None,
        client: bytes | None = None,
    ) -> tuple[bool, str, int]:
        """Return whether the request is refused, its party, and the number that identifies its token."""
        token = 0 if route.area.consumers else name_of(authorization)
        party = self.parties.of(route.area, params, token, client)
        creates = method in route.creates
        why = self._why_not(party, creates=creates)
        if why:
            self._note_refusal(why, party, creates=creates)
        return bool(why), party, token

    def _begin_window(self, now: float) -> None:
        # After a pause without requests, the counts from before the pause no longer mean anything.
        continues = now < self._window_ends + WINDOW
        self._stood, self._fewest = self._fewest if continues else 0, self.in_hand
        self._window_ends = now + WINDOW
        if not continues:
            self._seen.clear()
        if now >= self._put_off_ends:
            before = self._put_off if now < self._put_off_ends + PUT_OFF else set()
            self._put_off_before, self._put_off, self._put_off_ends = before, set(), now + PUT_OFF
        self._count_parties()
        self._seen.clear()
        self.places.moved_on()

    def patient(self, place: AdmissionSlot, receive: Receive) -> Receive:
        """Return a `receive` that gives up the place while it waits for the body, so that a slow client holds no place."""
        if place is FREE:
            return receive

        async def receive_on() -> Message:
            began = self._clock()
            self._give([place.party])
            try:
                return await receive()
            finally:
                self._held[place.party] = self._held.get(place.party, 0) + 1
                self.in_hand += 1
                place.since += self._clock() - began

        return receive_on

    def leave(self, place: AdmissionSlot, scope: Scope, status: int = 0) -> None:
        """Release the place of a request, and learn from its result.

        `status` is the HTTP status of the answer, or 0 if the client disconnected before an answer.
        """
        if place is FREE:
            return
        if not self._left:
            asyncio.get_running_loop().call_soon(self._gone_round)
        self._left.append(place.party)
        if "client_good" in scope:
            self.parties.remember_client(scope["client_good"])
        if "merchant_id" in scope:
            now = self._clock()
            self.places.done(now - place.since, now)
            if "token_good" in scope and place.party == STRANGERS:
                self.parties.remember(place.token, str(scope["merchant_id"]))
                if client := client_of_token(scope["headers"]):
                    self.parties.remember_client(client)
                # Admission counted this request for the unknown tokens, but its token belongs to a merchant.
                for parties in (self._seen, self._put_off, self._put_off_before):
                    parties.discard(STRANGERS)
                self._seen.add(str(scope["merchant_id"]))
                self._count_parties()
        elif status == 401 and place.token:
            self.parties.forget(place.token)

    def _count_parties(self) -> None:
        self._count = max(len(self._seen | self._put_off | self._put_off_before), 1)

    def _gone_round(self) -> None:
        """Release the places of the requests that were answered in the turn of the event loop that just ended."""
        self._give(self._left)

    def _why_not(self, party: str, *, creates: bool) -> str:
        """Return why this request is refused, or "" if it is admitted. `creates`: the request creates an order."""
        in_hand, places = self.in_hand, self.places.all
        if in_hand * 6 < places:
            return ""
        if in_hand >= places:
            return "full"
        stands = self._stood * 12 >= places or in_hand * 2 >= places
        parties = max(self._count, len(self._seen))
        if stands and (
            self._held.get(party, 0) * parties >= min(places, 3 * (in_hand + parties))
            or (self.parties.is_open(party) and self._open_hold_half())
        ):
            return "share"
        return "creation" if creates and in_hand >= self.places.for_new else ""

    def _note_refusal(self, why: str, party: str, *, creates: bool) -> None:
        self.places.refused(why, begun=not creates and self.parties.is_merchant(party))
        # A refused party still counts. Otherwise only the parties that hold places would get shares.
        self._seen.add(party)
        self._put_off.add(party)

    def _open_hold_half(self) -> bool:
        """Return whether parties without a valid token hold half of the places while a merchant sends requests."""
        is_open = self.parties.is_open
        held = sum(held for party, held in self._held.items() if is_open(party))
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
