"""A person of a merchant's team: one browser in the merchant's dashboard."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pyotp

from cuota.commands.desk import sandbox_link
from cuota.core.desk.person import Person
from cuota.core.desk.role import Role
from cuota.db.desk.sessions import DeskSession
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.index_orders import index_orders
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.sign_in import load_visit, make_link
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.makers import Merchant, Running
from support.pages.visitor import Page, Visitor


class Staff(Visitor):
    """One browser of one person of the team of `shop`."""

    def __init__(self, http: httpx.AsyncClient, shop: Merchant) -> None:
        super().__init__(http)
        self.shop = shop
        self.key = ""

    @property
    def service(self) -> Running:
        return self.shop.service

    async def enter(self, role: Role = Role.OWNER) -> Page:
        """Sign in by a link of the sandbox, without a second factor."""
        merchant = await find_merchant(self.service.context, str(self.shop.merchant_id))
        address = await sandbox_link(self.service.context, merchant, role)
        await self.open(urlsplit(address).path)
        action, fields = self.page.seen.forms[0]
        return await self._follow(await self.http.post(action, data=fields))

    async def invited(self, email: str, role: Role = Role.SUPPORT) -> Person:
        """Continue as a new person of the team, who has not signed in yet."""
        context, merchant_id = self.service.context, self.shop.merchant_id
        return await invite(context, merchant_id, OPERATOR, "Ana Silva", email, role, "new", mail=False)

    async def link(self, person: Person) -> str:
        """Return the path of a new sign-in link, like the one in a mail."""
        address = await make_link(self.service.context, person, mail=False)
        assert address is not None
        return urlsplit(address).path

    async def open_link(self, person: Person) -> Page:
        """Use a mailed link. The next page asks for the code of the app, or shows the key of a new one."""
        await self.open(await self.link(person))
        action, fields = self.page.seen.forms[0]
        page = await self._follow(await self.http.post(action, data=fields))
        if "Enter this key:" in page.text:
            key = page.text.partition("Enter this key:")[2].partition("On this device")[0]
            self.key = key.replace(" ", "")
        return page

    async def sign_in(self, person: Person) -> Page:
        """Sign in by a mailed link, and set up an authenticator app if the person has none."""
        await self.open_link(person)
        return await self.send("code", code=self.code())

    async def visit(self) -> DeskSession:
        """Return the session of this browser, as a request reads it."""
        found = await load_visit(
            self.service.context, self.shop.merchant_id, self.http.cookies["desk"].partition(".")[2]
        )
        assert found is not None
        return found.session

    def code(self) -> str:
        """Return the code that the authenticator app shows now."""
        return pyotp.TOTP(self.key).now()

    async def press(self, end: str, **fields: str) -> Page:
        """Send the form whose address ends with `action`, with these changes."""
        action, held = self.page.form(end)
        return await self._follow(await self.http.post(action, data={**held, **fields}))

    def form_named(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the address and the fields of the form with this name.

        Use this if several forms on the page have the same address.
        """
        return next(each for each in self.page.seen.forms if each[1].get("form") == name)

    async def press_in(self, name: str, **fields: str) -> Page:
        """Send the form with this name, with these changes."""
        action, held = self.form_named(name)
        return await self._follow(await self.http.post(action, data={**held, **fields}))

    async def send_file(self, action: str, fields: dict[str, str], name: str, content: bytes) -> Page:
        """Send a form with one file."""
        files = {"files": (name, content)}
        return await self._follow(await self.http.post(action, data=fields, files=files))

    async def indexed(self) -> None:
        """Run the jobs that make new orders searchable."""
        await publish_events(self.service.context)
        while await index_orders(self.service.context):
            pass
