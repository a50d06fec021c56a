"""Signing in to a dashboard with a passkey, on the sign-in page of either dashboard.

The browser's script asks for the options, and then sends the passkey's answer as a form. A short-lived cookie binds the
challenge to the browser.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.passkey import Passkey
from cuota.flows.context import Context
from cuota.flows.desk.check_passkey import (
    CHALLENGE_LIFE,
    PasskeyPurpose,
    PasskeyRefused,
    PasskeyStore,
    begin_using,
    check_passkey,
)
from cuota.flows.desk.sign_in import Place
from cuota.web.pages.checkout.session import Stop, form_of, keep_secret, kept_secret, see_other
from cuota.web.pages.desk.entrance import ANSWER_SECONDS, Door, Entrance, Visiting, place_of
from cuota.web.pages.desk.passkey_answers import options_answer, refusal
from cuota.web.service import service_of

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_SECONDS = int(CHALLENGE_LIFE.total_seconds())
V = TypeVar("V", bound=Visiting)
S = TypeVar("S", bound=PasskeyStore)


class PasskeyDoor(Door[V], Protocol[V, S]):
    """One dashboard, for signing in with a passkey. `cookie` names the cookie that binds a challenge to the browser."""

    cookie: str

    def passkeys(self, context: Context, secret: str, place: Place) -> S:
        """Return the passkey store for a person who is not known yet."""

    async def enter_by_passkey(
        self, context: Context, store: S, passkey: Passkey, before: V | None, place: Place
    ) -> str:
        """Open a session for the person whose passkey was checked, and end the earlier session. Return the text of the cookie.

        Raises PasskeyRefused where a passkey alone is not enough to sign in, or if the passkey was removed meanwhile.
        """


class PasskeyEntrance(Generic[V, S]):
    """The handlers of one dashboard for signing in with a passkey."""

    def __init__(self, door: PasskeyDoor[V, S], entrance: Entrance[V]) -> None:
        self.door = door
        self.entrance = entrance

    def _secret(self, request: Request) -> str | None:
        found = _SECRET.fullmatch(kept_secret(request, self.door.cookie) or "")
        return None if found is None else found[0]

    async def options(self, request: Request) -> Response:
        """Store a challenge for this browser, and return the options for `navigator.credentials.get`."""
        try:
            # As on the rest of the sign-in page, the token is the same for all browsers, and the check of the Origin header
            # protects the form.
            await form_of(request, "", self.door.place)
        except Stop as stop:
            return stop.response
        context, secret = service_of(request).context, self._secret(request) or secrets.token_urlsafe(32)
        store = self.door.passkeys(context, secret, place_of(request))
        try:
            response = options_answer(await begin_using(context, store, PasskeyPurpose.SIGN_IN))
        except PasskeyRefused as refused:
            return refusal(str(refused), status=429)
        keep_secret(request, response, self.door.cookie, secret, _SECONDS)
        return response

    async def enter(self, request: Request) -> Response:
        """Check the passkey's answer and sign in. All errors have the same response."""
        try:
            form = await form_of(request, "", self.door.place)
        except Stop as stop:
            return stop.response
        context, place = service_of(request).context, place_of(request)
        store = self.door.passkeys(context, self._secret(request) or "", place)
        # The delay is the same for all answers, because refusing an unknown passkey is faster than checking a known one.
        checked = check_passkey(context, store, PasskeyPurpose.SIGN_IN, form.get("passkey", ""))
        found, _ = await asyncio.gather(checked, asyncio.sleep(ANSWER_SECONDS), return_exceptions=True)
        if isinstance(found, PasskeyRefused):
            return self.entrance.sign_in_page(request, (str(found), "error"), status=400)
        if isinstance(found, BaseException):
            raise found
        before = await self.door.visit(request)
        try:
            kept = await self.door.enter_by_passkey(context, store, found, before, place)
        except PasskeyRefused as refused:
            return self.entrance.sign_in_page(request, (str(refused), "error"), status=400)
        response = see_other(self.door.path)
        self.door.keep(request, response, kept)
        keep_secret(request, response, self.door.cookie, "", 0)
        return response
