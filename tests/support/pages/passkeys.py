"""One browser with passkeys, in either dashboard, for tests of the service without a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx

from cuota.core.desk.passkey import relying_party
from cuota.flows.context import utc_now
from cuota.flows.desk.check_passkey import REFUSED
from support.pages.authenticator import Authenticator, Key
from support.pages.operator_staff import OperatorStaff
from support.pages.staff import Staff
from support.pages.visitor import Page


@dataclass
class Keyed:
    """The browser of `staff` with an authenticator. `root` is the dashboard's address: /desk or /operator."""

    staff: Staff | OperatorStaff
    root: str
    device: Authenticator = field(init=False)

    def __post_init__(self) -> None:
        self.device = Authenticator(relying_party(self.staff.service.settings.public_url).origin)

    @property
    def tables(self) -> str:
        """Return the prefix of the names of the dashboard's tables."""
        return self.root[1:]

    async def csrf(self) -> str:
        """Return the CSRF token of the forms that this browser may send now."""
        page = await self.staff.open(f"{self.root}/sign-in")
        return page.seen.forms[0][1]["csrf"]

    async def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form as the script does, without following redirects."""
        return await self.staff.http.post(
            f"{self.root}/{path}", data={"csrf": await self.csrf(), **fields}, follow_redirects=False
        )

    async def options(self, path: str, **fields: str) -> dict[str, Any]:
        answer = await self.post(f"{path}/options", **fields)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def add(self, name: str = "laptop", *, count: int = 0) -> Key:
        """Add a passkey. With `count`, the authenticator has a signature counter at that number."""
        made = self.device.create(await self.options("passkeys", name=name), count=count)
        answer = await self.post("passkeys", name=name, passkey=made)
        assert answer.headers.get("location") == f"{self.root}/passkeys?said=passkey-added", answer.text
        return self.device.keys[-1]

    async def leave(self) -> None:
        await self.post("leave")

    async def sign_in(self, key: Key | None = None) -> httpx.Response:
        """Sign in with a passkey. Return the response, which is a redirect after a success."""
        passkey = self.device.get(await self.options("sign-in/passkey"), key=key)
        return await self.post("sign-in/passkey", passkey=passkey)

    async def inside(self) -> bool:
        page = await self.staff.open(self.root)
        return page.heading != "Sign in"

    async def listed(self) -> Page:
        return await self.staff.open(f"{self.root}/passkeys")

    async def grow_old(self) -> None:
        """Make the second factor of every session of this person ten minutes old, and ask for it again."""
        people = [key.handle[-16:] for key in self.device.keys]
        sql = f"UPDATE {self.tables}_sessions SET proved_at = $1, one_step = false WHERE uuid_send(person_id) = ANY ($2)"
        await self.staff.service.context.pool.fetch(sql, utc_now() - timedelta(minutes=10), people)

    async def logged(self, action: str) -> list[Any]:
        """Return the audit log's entries with this action about this browser's people, the oldest first."""
        table = "audit_log" if self.root == "/desk" else "operator_log"
        people = [key.handle[-16:] for key in self.device.keys]
        sql = f"SELECT * FROM {table} WHERE action = $1 AND uuid_send(person_id) = ANY ($2) ORDER BY entry_id"
        return list(await self.staff.service.context.pool.fetch(sql, action, people))


Browsers = Callable[[], Keyed]


async def entered(make: Browsers) -> Keyed:
    """Return the browser of a new person who has set up an authenticator app."""
    one = make()
    staff: Any = one.staff
    await staff.sign_in(await staff.invited(f"ana-{uuid4().hex[:12]}@shop.example"))
    assert await one.inside()
    return one


async def with_passkey(make: Browsers, *, count: int = 0) -> Keyed:
    """Return a browser that has signed out, of a person with a passkey."""
    one = await entered(make)
    await one.add(count=count)
    await one.leave()
    assert not await one.inside()
    return one


def refused(answer: httpx.Response) -> bool:
    """True if a passkey was refused and nobody was signed in."""
    return answer.status_code == 400 and REFUSED in answer.text and "set-cookie" not in answer.headers
