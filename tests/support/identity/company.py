"""A service whose operator's people sign in at a company's provider, and a person of the company in a browser."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from cuota.config import Settings
from cuota.core.operator.person import Operator
from cuota.core.operator.provider import ProviderRules
from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.db.operator import operator_log
from cuota.rails.settings import ProviderSettings
from cuota.run import runtime
from cuota.web.app import make_app
from support.identity.real_provider import AtProvider, RealProvider
from support.makers import Clock
from support.own_service import InProcess
from support.pages.operator_staff import OperatorStaff
from support.pages.visitor import Page

NAME = "Acme Login"


class Employee(OperatorStaff):
    """A person of the company: a browser with the operator's dashboard and a session at the provider."""

    def __init__(self, company: Company) -> None:
        super().__init__(company.service.client(), company.service)
        self.company = company
        self.elsewhere = AtProvider()
        self.person: Operator
        self.account = ""

    async def leave_for(self, *, again: bool = False) -> str:
        """Follow the link on the sign-in page. Return the provider's address."""
        page = await self.open("/operator/provider" + ("?again=1" if again else ""))
        assert page.left is not None, page.text
        return page.left

    async def returning(self, account: str = "") -> str:
        """Sign in at the provider, and return the address to which the browser returns."""
        return await self.elsewhere.sign_in(await self.leave_for(), account or self.account)

    async def come_in(self, account: str = "") -> Page:
        """Sign in at the provider, and return to Cuota. Store the key of a new app, if the page shows one."""
        page = await self.open(await self.returning(account))
        if "Enter this key:" in page.text:
            key = page.text.partition("Enter this key:")[2].partition("On this device")[0]
            self.key = key.replace(" ", "")
        return page

    async def sign_in_fully(self) -> Page:
        """Sign in at the provider, and enter Cuota's second factor."""
        await self.come_in()
        return await self.send("code", code=self.code())

    async def confirm(self, account: str = "") -> Page:
        """Ask for a fresh second factor at the provider."""
        page = await self.open("/operator/provider/confirm")
        assert page.left is not None, page.text
        return await self.open(await self.elsewhere.sign_in(page.left, account or self.account))

    async def logged(self) -> list[str]:
        """Return this person's actions in the log, newest first."""
        found = await operator_log.page(self.service.context.pool, BEYOND, 500, actor=self.person.email)
        return [each.action for each in found]


@dataclass
class Company:
    """A service, and the provider at which its people sign in."""

    service: InProcess
    provider: RealProvider
    stack: AsyncExitStack

    def browser(self) -> Employee:
        """Return a browser that has no session yet."""
        employee = Employee(self)
        self.stack.push_async_callback(employee.http.aclose)
        self.stack.push_async_callback(employee.elsewhere.http.aclose)
        return employee

    async def employee(
        self, role: OperatorRole = OperatorRole.SUPPORT, *, amr: tuple[str, ...] = (), **account: Any
    ) -> Employee:
        """Invite a person whose account at the provider has the same e-mail address."""
        employee = self.browser()
        email = f"op-{secrets.token_hex(5)}@company.example"
        employee.person = await employee.invited(email, role)
        employee.account = await self.provider.account(
            f"account-{secrets.token_hex(5)}", account.pop("email", email), amr=amr, **account
        )
        return employee


@dataclass
class Companies:
    """Starts services with different rules for signing in."""

    settings: Settings
    where: dict[str, Any]
    provider: RealProvider
    stack: AsyncExitStack

    async def start(self, given: ProviderSettings | None = None, /, **rules: Any) -> Company:
        """Start a service with these rules. `given` replaces the settings of the provider."""
        settings = replace(
            self.settings,
            provider=given or self.provider.settings(),
            provider_rules=ProviderRules(NAME, **rules),
        )
        clock = Clock()
        context = await self.stack.enter_async_context(
            runtime.opened(settings, self.where, pool_size=8, now=clock.now)
        )
        return Company(InProcess(settings, context, clock, make_app(context)), self.provider, self.stack)
