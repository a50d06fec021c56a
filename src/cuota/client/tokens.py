"""The access token: fetched once for everybody who waits, kept, and replaced before its end."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from cuota.client.answers import Raw
from cuota.client.calls import Call
from cuota.client.errors import CuotaError, Unavailable
from cuota.client.money import json_text
from cuota.client.talk import ClientOptions, Locked, Send, Talk, Wait, settle

EARLY = 60.0  # seconds before its end at which a token is replaced
ASK_AGAIN = 5.0  # seconds for which one that still holds is kept where no new one could be had


@dataclass(frozen=True)
class _Held:
    token: str = field(repr=False)
    renew_at: float
    ends_at: float


class Tokens:
    """What one client holds. Its state is one reference, replaced whole: readers need no lock."""

    def __init__(self, terms: ClientOptions) -> None:
        self._terms = terms
        self._held: _Held | None = None
        self._rounds = 0
        self._failure: CuotaError | None = None

    def obtain(self, bad: str | None) -> Talk[str]:
        """A token that is not `bad`, the one that was just refused."""
        held, seen = self._held, self._rounds
        if held is not None and held.token != bad and self._terms.clock() < held.renew_at:
            return held.token
        token: str = yield Locked(self._fetch(bad, seen))
        return token

    def _fetch(self, bad: str | None, seen: int) -> Talk[str]:
        """Inside the lock. Who waited while somebody else asked shares what came of it, good or bad."""
        held = self._held if self._held is not None and self._held.token != bad else None
        if self._rounds != seen and self._failure is not None:
            raise copy.copy(self._failure)
        if held is not None and (self._rounds != seen or self._terms.clock() < held.renew_at):
            return held.token
        try:
            fresh = yield from self._ask()
        except CuotaError as error:
            now = self._terms.clock()
            if isinstance(error, Unavailable) and held is not None and now < held.ends_at:
                self._held = _Held(held.token, now + ASK_AGAIN, held.ends_at)
                return held.token
            self._failure = copy.copy(error)
            self._rounds += 1
            raise
        self._held, self._failure = fresh, None
        self._rounds += 1
        return fresh.token

    def _ask(self) -> Talk[_Held]:
        """Ask the issuer; safe to repeat, for a new token never ends an older one."""
        terms = self._terms
        asked = {
            "client_id": terms.client_id,
            "client_secret": terms.client_secret,
            "audience": terms.audience,
            "grant_type": "client_credentials",
        }
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        call: Call[_Held] = Call("POST", "/oauth/token", self._read, body=json_text(asked).encode())
        tries = 0
        while True:
            came = yield Send(call.method, terms.auth_url + call.path, headers, call.body)
            try:
                return settle(call, came, lost_before=False)
            except Unavailable as error:
                error.undecided = False
                pause = terms.pause(tries, error.retry_after)
                if pause is None:
                    raise
            tries += 1
            yield Wait(pause)

    def _read(self, raw: Raw) -> _Held:
        now, seconds = self._terms.clock(), float(raw["expires_in"])
        return _Held(str(raw["access_token"]), now + seconds - EARLY, now + seconds)
