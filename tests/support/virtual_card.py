"""A virtual-card order after its checkout, its card, and the merchant's card processor."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from cuota.core.checkout.card import read_card
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.issue_card import reveal_card
from cuota.flows.checkout.take_step import propose
from support.card import pay
from support.makers import Merchant, checkout, read_checkout
from support.signed import started


@dataclass
class Virtual:
    """An approved order, with the checkout of the browser that paid and the data of its last page."""

    shop: Merchant
    created: dict[str, Any]
    seen: Checkout
    secret: str

    @property
    def order_id(self) -> UUID:
        return UUID(self.created["orderId"])

    async def again(self) -> Checkout:
        """Load the checkout as the next request of the same browser does."""
        return await read_checkout(
            self.shop.service.context, self.shop.merchant_id, self.order_id, self.secret
        )

    async def reveal(self) -> dict[str, Any] | None:
        return await reveal_card(self.shop.service.context, await self.again())

    async def card(self) -> dict[str, str]:
        result = await self.reveal()
        assert result is not None
        return dict(result["card"])

    async def book(self) -> dict[str, Any]:
        """Return the issuer's own record of this card."""
        sql = "SELECT * FROM issuing_simulator.cards WHERE order_id = $1"
        row = await self.shop.service.context.pool.fetchrow(sql, self.order_id)
        assert row is not None
        return dict(row)

    async def authorize(self, card: dict[str, str], amount: object, **more: object) -> dict[str, Any]:
        """Ask for an authorization as the processor. `more` replaces fields of the request."""
        answer = await ask(self.shop.http, "authorize", {**card, "amount": amount, **more})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def clear(
        self, authorization: str, operation: str, amount: object, reference: str | None = None
    ) -> httpx.Response:
        body = {"reference": reference or secrets.token_hex(8)}
        if amount is not None:
            body["amount"] = str(amount)
        return await ask(self.shop.http, f"authorizations/{authorization}/{operation}", body)


async def ask(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> httpx.Response:
    """Make one call as the card processor. It has no access token of the merchant."""
    return await http.post(f"/sandbox/cards/{path}", json=body)


async def virtual_order(shop: Merchant, amount: object = "100.00", **more: object) -> Virtual:
    """Return an approved virtual-card order whose card was not shown yet."""
    return await paid(shop, await opened(shop, amount, **more))


async def opened(shop: Merchant, amount: object = "100.00", **more: object) -> dict[str, Any]:
    """Return a virtual-card checkout that nobody has paid yet."""
    return await started(shop, amount, integrationType="virtual_card", order=more)


async def paid(shop: Merchant, created: dict[str, Any]) -> Virtual:
    """Take a browser through the checkout, and pay the first installment."""
    context = shop.service.context
    seen, secret = await checkout(shop.service, shop.merchant_id, created)
    assert seen.session.profile is not None
    terms = propose(context, seen, seen.session.profile)
    entry = read_card("4242 4242 4242 4242", "12/39", "123", datetime.now(UTC).date())
    await pay(context, seen, entry, terms.agreement.hash)
    return Virtual(shop, created, seen, secret)


async def everything(where: dict[str, Any]) -> dict[str, str]:
    """Return every row of every table as text, except the sandbox's inbox, which simulates the consumers' phones."""
    connection = await asyncpg.connect(**where)
    try:
        sql = """SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
            WHERE schemaname NOT IN ('pg_catalog', 'information_schema', 'message_simulator')"""
        names = [row[0] for row in await connection.fetch(sql)]
        return {
            name: "\n".join(
                row[0] for row in await connection.fetch(f"SELECT to_jsonb(t)::text FROM {name} t")
            )
            for name in names
        }
    finally:
        await connection.close()
