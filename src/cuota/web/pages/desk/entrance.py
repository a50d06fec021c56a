"""The pages on which people sign in to and out of a dashboard: a mailed link, and a code from an authenticator app.

Both dashboards, the merchant's and the operator's, have these pages. A `Door` contains the differences.
"""

from __future__ import annotations

import asyncio
import re
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.person import read_email
from cuota.flows.context import Context
from cuota.flows.desk.sign_in import Place
from cuota.flows.desk.totp import WrongCode
from cuota.web.pages.checkout.session import Stop, csrf_of, form_of, see_other
from cuota.web.pages.render import PageContext, page, problem
from cuota.web.server.client_address import client_address
from cuota.web.service import service_of

_SAID = {
    "left": ("You are signed out.", "done"),
    "ended": ("Your session has ended. Sign in again.", "calm"),
}
# The response takes this long for every address. Otherwise an attacker could find out which addresses belong to a
# person, because queuing a mail takes longer.
ANSWER_SECONDS = 0.25
_CODE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class Visiting(Protocol):
    """A browser's session: its secret, and whether the second factor was given."""

    @property
    def secret(self) -> str:
        """The secret in the browser's cookie."""

    @property
    def signed_in(self) -> bool:
        """Whether the second factor was given."""


V = TypeVar("V", bound=Visiting)


class Door(Protocol[V]):
    """One dashboard, for its sign-in pages. `path` is its root, `place` names its pages in an error."""

    path: str
    place: str

    async def visit(self, request: Request) -> V | None:
        """Return this browser's session, or None."""

    async def ask_link(self, context: Context, email: str) -> None:
        """Queue a mail with a link, if a person has this address."""

    def provider(self, request: Request) -> PageContext | None:
        """Return the provider for signing in: its name, its address, and whether it is the only way.

        None if no provider is set.
        """

    def second_factors(self, visit: V) -> tuple[bool, bool]:
        """Return whether the page for the second factor asks for an app's code, and whether the page offers a passkey."""

    async def email_of_link(self, request: Request) -> str | None:
        """Return the address of the person whom the link in the path signs in, or None if the link does not work."""

    async def use_link(self, request: Request, place: Place) -> str | None:
        """Use up the link in the path. Return the text of the cookie, or None if the link no longer works."""

    async def new_app(self, context: Context, visit: V) -> tuple[str, str] | None:
        """Return the key of the app to set up, and its `otpauth://` address, or None if the person has an app."""

    async def finish(self, context: Context, visit: V, typed: str, place: Place) -> str | None:
        """Check the code. Return the text of the new cookie, or None if the session has ended meanwhile. Raises WrongCode."""

    async def leave(self, context: Context, visit: V) -> None:
        """End the session."""

    def keep(self, request: Request, response: Response, text: str) -> None:
        """Set the cookie. An empty text deletes the cookie."""


def place_of(request: Request) -> Place:
    """Return the browser's user agent and its IP address."""
    return Place(request.headers.get("user-agent", ""), client_address(request) or "")


class Entrance(Generic[V]):
    """The handlers of the sign-in pages of one dashboard."""

    def __init__(self, door: Door[V]) -> None:
        self.door = door

    def _shell(self, request: Request, title: str, lead: str | None, secret: str = "") -> PageContext:
        """Return the values of a page for a browser that is not signed in. `secret` is used for the CSRF token of the form."""
        return {
            "page": {"title": title, "lead": lead},
            "sandbox": service_of(request).settings.sandbox,
            "form": {"action": self.door.path, "csrf": csrf_of(request, secret)},
            "root": self.door.path,
            "nav": [],
            "person": None,
            "merchant_name": None,
            "errors": {},
            "values": {},
            "notice": None,
            "notice_tone": "error",
            "passkey": "",
            "passkey_script": False,
        }

    async def show_sign_in(self, request: Request) -> Response:
        """Ask for the e-mail address."""
        visit = await self.door.visit(request)
        if visit is not None and visit.signed_in:
            return see_other(self.door.path)
        return self.sign_in_page(request, _SAID.get(request.query_params.get("said", ""), (None, "error")))

    def sign_in_page(
        self, request: Request, said: tuple[str | None, str], *, status: int = 200, **more: object
    ) -> Response:
        """Return the sign-in page, with a notice and its tone."""
        provider = self.door.provider(request)
        only = provider is not None and provider["only"]
        if provider is None:
            lead = "We mail you a link. No password is needed."
        elif only:
            lead = f"You sign in with {provider['name']}."
        else:
            lead = f"Use your account at {provider['name']}, or let us mail you a link."
        shown = self._shell(request, "Sign in", lead)
        shown["provider"] = provider
        shown |= {"notice": said[0], "notice_tone": said[1], "passkey_script": not only, **more}
        return page(request, "desk/sign_in.html", shown, status=status)

    async def ask_link(self, request: Request) -> Response:
        """Queue the mail with the link. The response is the same for every address."""
        try:
            # A browser without a session has no secret, so all such browsers have the same token. The check of the Origin
            # header protects this form.
            form = await form_of(request, "", self.door.place)
        except Stop as stop:
            return stop.response
        if (provider := self.door.provider(request)) and provider["only"]:
            return self.sign_in_page(request, (f"Sign in with {provider['name']}.", "error"), status=400)
        email = read_email(form.get("email", ""))
        if email is None:
            errors = {"email": "Enter an e-mail address, such as ana@example.com."}
            return self.sign_in_page(request, (None, "error"), status=400, errors=errors, values=form)
        asked = self.door.ask_link(service_of(request).context, email)
        await asyncio.gather(asked, asyncio.sleep(ANSWER_SECONDS))
        lead = f"If {email} belongs to a team, a link is on its way. It works once, for 15 minutes."
        return page(request, "desk/mailed.html", self._shell(request, "Check your e-mail", lead))

    async def show_link(self, request: Request) -> Response:
        """Ask before the link is used, because mail programs open links automatically. This page does not use the link up."""
        email = await self._email(request)
        if email is None:
            return self._dead(request)
        shown = self._shell(request, "Sign in", None, request.path_params["code"])
        shown |= {"email": email, "address": request.url.path}
        return page(request, "desk/link.html", shown)

    async def _email(self, request: Request) -> str | None:
        if not _CODE.fullmatch(request.path_params["code"]):
            return None
        return await self.door.email_of_link(request)

    async def use_link(self, request: Request) -> Response:
        """Use up the link and open a session."""
        if await self._email(request) is None:
            return self._dead(request)
        try:
            await form_of(request, request.path_params["code"], self.door.place)
        except Stop as stop:
            return stop.response
        kept = await self.door.use_link(request, place_of(request))
        if kept is None:
            return self._dead(request)
        response = see_other(f"{self.door.path}/code")
        self.door.keep(request, response, kept)
        return response

    def _dead(self, request: Request) -> Response:
        text = "A link works once, and only for a limited time. Ask for a new one."
        back = f"{self.door.path}/sign-in", "Ask for a new link"
        return problem(request, 410, "This link no longer works", text, back=back)

    def _ended(self) -> Response:
        return see_other(f"{self.door.path}/sign-in?said=ended")

    async def show_code(self, request: Request) -> Response:
        """Ask for the code of the authenticator app, or set up an app."""
        visit = await self.door.visit(request)
        if visit is None:
            return self._ended()
        return see_other(self.door.path) if visit.signed_in else await self._code_page(request, visit)

    async def _code_page(self, request: Request, visit: V, wrong: str | None = None) -> Response:
        by_app, by_passkey = self.door.second_factors(visit)
        new = await self.door.new_app(service_of(request).context, visit) if by_app else None
        if new is None:
            title, lead = (
                ("Enter your code", "Open your authenticator app.") if by_app else ("Use your passkey", None)
            )
            shown = self._shell(request, title, lead, visit.secret)
            shown |= {"key": None, "address": None}
        else:
            key, address = new
            lead = "From now on, signing in also needs a code from an authenticator app on your phone."
            shown = self._shell(request, "Set up your second factor", lead, visit.secret)
            groups = [key[at : at + 4] for at in range(0, len(key), 4)]
            shown |= {"key": " ".join(groups), "address": address}
        shown |= {"by_app": by_app, "by_passkey": by_passkey, "passkey_script": by_passkey}
        # This is the same form as on the sign-in page, so it has the same token.
        shown["passkey_csrf"] = csrf_of(request, "")
        if wrong:
            shown |= {"errors": {"code": wrong}, "notice": None if by_app else wrong}
        return page(request, "desk/code.html", shown, status=400 if wrong else 200)

    async def check_code(self, request: Request) -> Response:
        """Check the code and finish signing in, with a new session secret."""
        visit = await self.door.visit(request)
        if visit is None:
            return self._ended()
        if visit.signed_in:
            return see_other(self.door.path)
        try:
            form = await form_of(request, visit.secret, self.door.place)
        except Stop as stop:
            return stop.response
        try:
            kept = await self.door.finish(
                service_of(request).context, visit, form.get("code", ""), place_of(request)
            )
        except WrongCode as wrong:
            visit = await self.door.visit(request)
            return self._ended() if visit is None else await self._code_page(request, visit, str(wrong))
        if kept is None:
            return self._ended()
        response = see_other(self.door.path)
        self.door.keep(request, response, kept)
        return response

    async def leave(self, request: Request) -> Response:
        """Sign out: end the session, and delete this browser's secret."""
        visit = await self.door.visit(request)
        if visit is not None:
            try:
                await form_of(request, visit.secret, self.door.place)
            except Stop as stop:
                return stop.response
            await self.door.leave(service_of(request).context, visit)
        response = see_other(f"{self.door.path}/sign-in?said=left")
        self.door.keep(request, response, "")
        return response
