"""A person of the operator's team: one browser in the operator's dashboard."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pyotp

from cuota.commands.desk import operator_sandbox_link
from cuota.core.operator.person import Operator
from cuota.core.operator.role import OperatorRole
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.operator_sign_in import make_operator_link
from support.makers import Running
from support.pages.visitor import Page, Visitor


class OperatorStaff(Visitor):
    """One browser of one person of the operator's team."""

    def __init__(self, http: httpx.AsyncClient, service: Running) -> None:
        super().__init__(http)
        self.service = service
        self.key = ""

    async def enter(self, role: OperatorRole = OperatorRole.OWNER) -> Page:
        """Sign in by a link of the sandbox, without a second factor."""
        address = await operator_sandbox_link(self.service.context, role)
        await self.open(urlsplit(address).path)
        return await self._use_link()

    async def _use_link(self) -> Page:
        action, fields = self.page.seen.forms[0]
        return await self._follow(await self.http.post(action, data=fields))

    async def invited(self, email: str, role: OperatorRole = OperatorRole.SUPPORT) -> Operator:
        """Continue as a new person of the team, who has not signed in yet."""
        return await invite_operator(
            self.service.context, OperatorActor(None), "Ana Silva", email, role, "new", mail=False
        )

    async def link(self, person: Operator) -> str:
        """Return the path of a new sign-in link, like the one in a mail."""
        address = await make_operator_link(self.service.context, person, mail=False)
        assert address is not None
        return urlsplit(address).path

    async def open_link(self, person: Operator) -> Page:
        """Use a mailed link. The next page asks for the code of the app, or shows the key of a new one."""
        await self.open(await self.link(person))
        page = await self._use_link()
        if "Enter this key:" in page.text:
            key = page.text.partition("Enter this key:")[2].partition("On this device")[0]
            self.key = key.replace(" ", "")
        return page

    async def sign_in(self, person: Operator) -> Page:
        """Sign in by a mailed link, and set up an authenticator app if the person has none."""
        await self.open_link(person)
        return await self.send("code", code=self.code())

    def code(self) -> str:
        """Return the code that the authenticator app shows now."""
        return pyotp.TOTP(self.key).now()

    async def press(self, end: str, **fields: str) -> Page:
        """Send the form whose address ends with `action`, with these changes."""
        action, held = self.page.form(end)
        return await self._follow(await self.http.post(action, data={**held, **fields}))
