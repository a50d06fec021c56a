"""A tab in a real Chromium with a virtual authenticator, in either dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from playwright.async_api import CDPSession, Page, Request, expect

from cuota.flows.context import utc_now
from support.makers import Merchant, Running

_DEVICE = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


@dataclass
class Seat:
    """A tab of a person. `root` is the dashboard's path. `sent` are the answers of passkeys that the tab sent."""

    page: Page
    shop: Merchant
    root: str
    device: CDPSession
    authenticator: str
    sent: list[str]

    @property
    def service(self) -> Running:
        return self.shop.service

    @property
    def base(self) -> str:
        return self.service.settings.public_url + self.root

    async def ask(self, method: str, **given: Any) -> Any:
        """Send a command to the virtual authenticator."""
        return await self.device.send(f"WebAuthn.{method}", {"authenticatorId": self.authenticator, **given})

    async def add(self, name: str = "laptop") -> None:
        """Press the button that adds a passkey, without waiting for the result."""
        await self.page.goto(f"{self.base}/passkeys")
        await self.page.get_by_label("Name").fill(name)
        await self.page.get_by_role("button", name="Add a passkey").click()

    async def added(self, name: str = "laptop") -> None:
        await self.add(name)
        await expect(self.page.get_by_role("status").first).to_contain_text("The passkey is added.")

    async def leave(self) -> None:
        await self.page.get_by_role("button", name="Sign out").click()
        await expect(self.page.get_by_text("You are signed out.")).to_be_visible()

    async def press_sign_in(self) -> None:
        await self.page.goto(f"{self.base}/sign-in")
        await self.page.get_by_role("button", name="Sign in with a passkey").click()

    async def inside(self) -> None:
        await expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    async def refused(self) -> None:
        await expect(self.page.get_by_role("alert")).to_contain_text("This passkey was not accepted.")
        await expect(self.page.get_by_role("button", name="Mail me a link")).to_be_visible()

    async def grow_old(self) -> None:
        """Make the second factor too old in every session of this database."""
        sql = f"UPDATE {self.root[1:]}_sessions SET proved_at = $1::timestamptz - interval '10 minutes', one_step = false"
        await self.service.context.pool.fetch(sql, utc_now())


async def seat(page: Page, shop: Merchant, root: str, link: str) -> Seat:
    """Sign in by a link of the sandbox, in a tab with a new virtual authenticator."""
    device = await page.context.new_cdp_session(page)
    await device.send("WebAuthn.enable", {"enableUI": False})
    made = await device.send("WebAuthn.addVirtualAuthenticator", {"options": _DEVICE})
    sent: list[str] = []

    def keep(request: Request) -> None:
        sent.extend(parse_qs(request.post_data or "").get("passkey", []))

    page.on("request", keep)
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    found = Seat(page, shop, root, device, made["authenticatorId"], sent)
    await found.inside()
    return found
