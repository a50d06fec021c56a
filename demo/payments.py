"""The whole integration with the payment provider: an order, and what happens to it later.

The provider's own client does the rest: the token, and trying again where that is safe. Every call that changes
something carries a key that the caller chose and wrote down first. So a call whose answer was lost can be repeated
with the same key, and is never done twice.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TypeVar

import httpx

from cuota.client import AsyncClient, CuotaError, RequestRefused, Unavailable, cents

from .money import from_json
from .records import AmountLimits, JsonObject, NewCheckout, Payment, ShopMovement
from .settings import ShopSettings

T = TypeVar("T")
PAUSES = (0.2, 0.8)  # seconds before the second and the third try: a buyer waits
LONGEST_WAIT = 3  # seconds
LIMITS_FOR = 3600  # seconds for which the limits are remembered


class PaymentError(Exception):
    """The provider refused, or could not be asked. Branch on `code`, never on the text."""

    def __init__(self, error: CuotaError) -> None:
        super().__init__(str(error))
        known = error if isinstance(error, RequestRefused | Unavailable) else None
        answer = error.raw if isinstance(error, RequestRefused) else {}
        self.code = known.code if known else "unreachable"
        self.message = known.message if known else str(error)
        self.balances: JsonObject = answer.get("balances") or {}
        self.original: JsonObject = answer.get("original") or {}
        # With no answer, or one that says "later", the call may have been applied or not: keep its key.
        self.undecided = isinstance(error, Unavailable) or error.undecided


class Payments:
    """The provider's API as the shop needs it. One object serves the whole process."""

    def __init__(self, settings: ShopSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(timeout=8, trust_env=False, transport=transport)
        self._client = AsyncClient(
            settings.api_url,
            settings.client_id,
            settings.client_secret,
            audience=settings.audience,
            auth_url=settings.auth_url,
            pauses=PAUSES,
            longest_wait=LONGEST_WAIT,
            http=self._http,
        )
        self._limits: AmountLimits | None = None
        self._limits_until = 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def limits(self) -> AmountLimits:
        """Read between which amounts pay in four is offered; asked for once an hour."""
        if self._limits is None or time.monotonic() >= self._limits_until:
            terms = await _told(self._client.configuration())
            self._limits = AmountLimits(from_json(terms.minimum_amount), from_json(terms.maximum_amount))
            self._limits_until = time.monotonic() + LIMITS_FOR
        return self._limits

    async def create_order(self, order: JsonObject, key: str) -> NewCheckout:
        """Create an order. The same key again answers the same order."""
        made = await _told(self._client.create_order(order, idempotency_key=key))
        return NewCheckout(order_id=made.order_id, redirect_url=made.redirect_url)

    async def read_order(self, order_id: str) -> Payment:
        """Read how an order stands. This, not the browser's return, says whether it is paid."""
        return Payment.read((await _told(self._client.get_order(order_id))).raw)

    async def capture(self, order_id: str, amount: int, reference: str) -> ShopMovement:
        """Take money that the consumer's approval set aside, when goods are shipped."""
        moved = await _told(self._client.capture(order_id, cents(amount), reference))
        return ShopMovement.read("capture", moved.raw)

    async def void(self, order_id: str, amount: int, reference: str) -> ShopMovement:
        """Let go of money not yet captured, when goods will not be shipped."""
        moved = await _told(self._client.void(order_id, cents(amount), reference))
        return ShopMovement.read("void", moved.raw)

    async def refund(self, order_id: str, amount: int, reference: str) -> ShopMovement:
        """Give back money that was captured."""
        moved = await _told(self._client.refund(order_id, cents(amount), reference))
        return ShopMovement.read("refund", moved.raw)

    async def preview(self, kind: str, order_id: str, amount: int, reference: str) -> JsonObject:
        """Ask what a capture, void or refund would do. Nothing changes."""
        ask = {"capture": self._client.capture, "void": self._client.void, "refund": self._client.refund}[
            kind
        ]
        return dict((await _told(ask(order_id, cents(amount), reference, dry_run=True))).raw)


async def _told(answer: Awaitable[T]) -> T:
    """The client's answer; whatever it raises, in the shop's words."""
    try:
        return await answer
    except CuotaError as error:
        raise PaymentError(error) from error
