"""A builder for each noun of the tests. The builders use the real flows and the real API, without any mock."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx

from cuota.config import Settings
from cuota.core.checkout.card import read_card
from cuota.core.consumer import Profile
from cuota.core.merchant import BodyProfile
from cuota.core.order.order import Order
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.identify_consumer import check_code, give_details, send_code
from cuota.flows.checkout.take_step import load, open_checkout, propose
from cuota.flows.context import Context
from cuota.flows.merchant import manage_merchants
from cuota.web.server.edge import Edge
from support.card import pay
from support.contract import Contract
from support.core.values import PROFILE
from support.phones import phone_number

ADDRESS = PROFILE.address


class Clock:
    """The service's clock: real time plus the time by which tests have moved it forward."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @asynccontextmanager
    async def moved(self, **by: float) -> AsyncIterator[None]:
        """Inside the block, the clock is ahead by timedelta(**by)."""
        self.ahead += timedelta(**by)
        try:
            yield
        finally:
            self.ahead -= timedelta(**by)


@dataclass
class Running:
    """A running service."""

    settings: Settings
    context: Context
    clock: Clock
    app: Edge
    contract: Contract = field(default_factory=Contract)

    def client(self, **more: Any) -> httpx.AsyncClient:
        """Return an HTTP client that checks each exchange against the OpenAPI document."""

        async def check(response: httpx.Response) -> None:
            await response.aread()
            request = response.request
            path = request.url.raw_path.decode()
            route, _ = self.app.routes.find(request.method, request.url.path)
            if not route.area.documented or "x-no-contract" in request.headers:
                return
            self.contract.check(
                request.method, path, response.status_code, response.headers, response.content,
                request_body=request.content or None, lenient="x-lenient" in request.headers,
            )  # fmt: skip

        return httpx.AsyncClient(
            base_url=self.settings.public_url, trust_env=False, timeout=60, event_hooks={"response": [check]},
            limits=httpx.Limits(max_connections=100), **more,
        )  # fmt: skip


@dataclass
class Merchant:
    """A merchant with its secrets, and an HTTP client that sends its access token."""

    service: Running
    merchant_id: UUID
    client_id: str
    client_secret: str
    signing_secret: str
    name: str
    http: httpx.AsyncClient

    async def token(self) -> str:
        """Return a new access token."""
        body = {
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "audience": self.service.settings.audience,
            "grant_type": "client_credentials",
        }
        answer = await self.http.post("/oauth/token", json=body)
        return str(answer.json()["access_token"])

    async def create(self, amount: object = "100.00", **more: object) -> dict[str, Any]:
        """Create an order in state Created, and return the JSON of `POST /order`."""
        answer = await self.http.post("/order", json=order_body(amount, **more))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def approved(self, amount: object = "100.00", **more: object) -> dict[str, Any]:
        """Create an order in state Approved. Its first installment is paid by a card that accepts charges."""
        created = await self.create(amount, **more)
        await complete(self.service, self.merchant_id, created)
        return created

    async def read(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the order record."""
        return dict((await self.http.get(f"/order/{order['orderId']}")).json())

    async def move(
        self, order: dict[str, Any], operation: str, amount: object, reference: str | None = None, **more: Any
    ) -> httpx.Response:
        """Capture, void or refund. Without a reference, the movement gets a new one."""
        body = {"amount": amount, "merchantReference": reference or secrets.token_hex(8)}
        return await self.http.post(f"/order/{order['orderId']}/{operation}", json=body, **more)


def order_body(amount: object = "100.00", **more: object) -> dict[str, object]:
    """Return a valid body of `POST /order`."""
    return {
        "amount": amount,
        "merchantReference": "A-1042",
        "merchant": {
            "redirectConfirmUrl": "http://127.0.0.1:9/confirm?order=7",
            "redirectCancelUrl": "http://127.0.0.1:9/cancel",
        },
        **more,
    }


@asynccontextmanager
async def make_merchant(
    service: Running,
    *,
    defer_funds_capture: bool = True,
    profile: BodyProfile = BodyProfile.STRICT,
    maximum: int = 200_000,
) -> AsyncIterator[Merchant]:
    """Make a new merchant. Its HTTP client is closed at the end of the block."""
    name = f"Shop {secrets.token_hex(5)}"
    terms = manage_merchants.MerchantTerms(
        name=name, maximum=maximum, defer_funds_capture=defer_funds_capture, profile=profile
    )
    new = await manage_merchants.create_merchant(service.context, terms)
    async with service.client() as http:
        made = Merchant(
            service,
            new.merchant.merchant_id,
            new.client_id,
            new.client_secret,
            new.signing_secret,
            name,
            http,
        )
        http.headers["Authorization"] = f"Bearer {await _first_token(service, made)}"
        yield made


async def _first_token(service: Running, merchant: Merchant) -> str:
    async with service.client() as bare:
        return await Merchant(**{**vars(merchant), "http": bare}).token()


async def checkout(
    service: Running,
    merchant_id: UUID,
    created: dict[str, Any],
    profile: Profile = PROFILE,
    phone: str | None = None,
) -> tuple[Checkout, str]:
    """Return a checkout in a browser that has proved its number and entered its details, with the session secret."""
    context = service.context
    opened = await open_checkout(context, merchant_id, UUID(created["token"]))
    assert opened is not None
    order_id, secret = opened
    number = phone or phone_number()
    await send_code(context, await read_checkout(context, merchant_id, order_id, secret), number)
    secret = await check_code(context, await read_checkout(context, merchant_id, order_id, secret), "123456")
    await give_details(context, await read_checkout(context, merchant_id, order_id, secret), profile)
    return await read_checkout(context, merchant_id, order_id, secret), secret


async def read_checkout(context: Context, merchant_id: UUID, order_id: UUID, secret: str) -> Checkout:
    """Return the checkout as it is now."""
    found = await load(context, merchant_id, order_id, secret)
    assert found is not None
    return found


async def complete(
    service: Running,
    merchant_id: UUID,
    created: dict[str, Any],
    card: str = "4242 4242 4242 4242",
    profile: Profile = PROFILE,
    phone: str | None = None,
) -> Order:
    """Take the flows of the hosted checkout up to the payment button, and press the button."""
    seen, _ = await checkout(service, merchant_id, created, profile, phone)
    assert seen.session.profile is not None
    terms = propose(service.context, seen, seen.session.profile)
    entry = read_card(card, "12/39", "123", datetime.now(UTC).date())
    return await pay(service.context, seen, entry, terms.agreement.hash)
