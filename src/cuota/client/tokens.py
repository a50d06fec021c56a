"""Requests and stores the access token.

One request serves all calls that wait for a token, and a token is renewed early.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from cuota.client.answers import Raw
from cuota.client.calls import Call
from cuota.client.errors import CuotaError, Unavailable
from cuota.client.money import json_text
from cuota.client.talk import ClientOptions, Locked, Send, Talk, Wait, settle

EARLY = 60.0  # a token is renewed this many seconds before it expires
ASK_AGAIN = 5.0  # if renewing fails, a token that is still valid is used for this many seconds before the next attempt


@dataclass(frozen=True)
class _Held:
    token: str = field(repr=False)
    renew_at: float
    ends_at: float


class Tokens:
    """The access token of one client. Its state is replaced as one object, so reading needs no lock."""

    def __init__(self, terms: ClientOptions) -> None:
        self._terms = terms
        self._held: _Held | None = None
        self._rounds = 0
        self._failure: CuotaError | None = None

    def obtain(self, bad: str | None) -> Talk[str]:
        """Return a token other than `bad`, which the service just refused (None: any token)."""
        held, seen = self._held, self._rounds
        if held is not None and held.token != bad and self._terms.clock() < held.renew_at:
            return held.token
        token: str = yield Locked(self._fetch(bad, seen))
        return token

    def _fetch(self, bad: str | None, seen: int) -> Talk[str]:
        """Fetch a token; the caller holds the lock.

        If another call has fetched while this one waited for the lock, use its token or raise its error.
        """
        held = self._held if self._held is not None and self._held.token != bad else None
        if self._rounds != seen and self._failure is not None:
            raise copy.copy(self._failure)
        if held is not None and (self._rounds != seen or self._terms.clock() < held.renew_at):
            return held.token
        try:
            fresh = yield from self._request_token()
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

    def _request_token(self) -> Talk[_Held]:
        """Request a token from the issuer. A retry is safe, because a new token does not revoke an older one."""
        terms = self._terms
        credentials = {
            "client_id": terms.client_id,
            "client_secret": terms.client_secret,
            "audience": terms.audience,
            "grant_type": "client_credentials",
        }
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        call: Call[_Held] = Call("POST", "/oauth/token", self._read, body=json_text(credentials).encode())
        tries = 0
        while True:
            result = yield Send(call.method, terms.auth_url + call.path, headers, call.body)
            try:
                return settle(call, result, lost_before=False)
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
