"""The shop's integration with the payment provider: creates orders, reads them, and moves money.

The provider's Python client gets access tokens, and retries calls if that is safe. Every call that changes something has
an idempotency key or a reference, which the shop stores before the call. If an answer is lost, the shop can repeat the
call with the same key, and it is applied only once.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import httpx

from cuota.client import (
    AsyncClient,
    Balance,
    CuotaError,
    Dispute,
    Payout,
    PayoutLine,
    RequestRefused,
    Terms,
    Unavailable,
    cents,
)

from .money import from_json
from .records import AmountLimits, JsonObject, NewCheckout, Payment, ShopMovement
from .settings import ShopSettings

T = TypeVar("T")
PAUSES = (0.2, 0.8)  # seconds before the second and the third attempt; short, because a buyer is waiting
LONGEST_WAIT = 3  # seconds
PAYOUTS = 100  # the number of listed payouts
DISPUTES = 20  # the number of listed disputes of an order
LIMITS_FOR = 3600  # the limits are cached for this many seconds


class PaymentError(Exception):
    """The provider refused a call, or could not be reached. Decide by `code`; the text may change."""

    def __init__(self, error: CuotaError) -> None:
        super().__init__(str(error))
        known = error if isinstance(error, RequestRefused | Unavailable) else None
        answer = error.raw if isinstance(error, RequestRefused) else {}
        self.code = known.code if known else "unreachable"
        self.message = known.message if known else str(error)
        self.balances: JsonObject = answer.get("balances") or {}
        self.original: JsonObject = answer.get("original") or {}
        # Without an answer, or with a temporary error, the call may have been applied. The shop must keep its key.
        self.undecided = isinstance(error, Unavailable) or error.undecided


class Payments:
    """The calls of the provider's API that the shop needs. One object serves the whole process."""

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
        """Return the amounts between which Pay in four is offered. They are read once an hour."""
        if self._limits is None or time.monotonic() >= self._limits_until:
            terms = await _converting_errors(self._client.configuration())
            self._limits = AmountLimits(from_json(terms.minimum_amount), from_json(terms.maximum_amount))
            self._limits_until = time.monotonic() + LIMITS_FOR
        return self._limits

    async def create_order(self, order: JsonObject, key: str) -> NewCheckout:
        """Create an order. A repeated call with the same key returns the same order."""
        made = await _converting_errors(self._client.create_order(order, idempotency_key=key))
        return NewCheckout(order_id=made.order_id, redirect_url=made.redirect_url)

    async def read_order(self, order_id: str) -> Payment:
        """Read an order. This call decides whether the order is paid; the browser's return to the shop does not."""
        return Payment.read((await _converting_errors(self._client.get_order(order_id))).raw)

    async def capture(self, order_id: str, amount: int, reference: str) -> ShopMovement:
        """Capture part or all of an order, in cents, when goods are shipped."""
        moved = await _converting_errors(self._client.capture(order_id, cents(amount), reference))
        return ShopMovement.read("capture", moved.raw)

    async def void(self, order_id: str, amount: int, reference: str) -> ShopMovement:
        """Void part or all of the uncaptured amount, in cents, for goods that will not be shipped."""
        moved = await _converting_errors(self._client.void(order_id, cents(amount), reference))
        return ShopMovement.read("void", moved.raw)

    async def refund(self, order_id: str, amount: int, reference: str) -> ShopMovement:
        """Refund part or all of the captured amount, in cents."""
        moved = await _converting_errors(self._client.refund(order_id, cents(amount), reference))
        return ShopMovement.read("refund", moved.raw)

    async def preview(self, kind: str, order_id: str, amount: int, reference: str) -> JsonObject:
        """Return the effect that a capture, void or refund would have. Nothing changes."""
        call = {"capture": self._client.capture, "void": self._client.void, "refund": self._client.refund}[
            kind
        ]
        return dict((await _converting_errors(call(order_id, cents(amount), reference, dry_run=True))).raw)

    async def balance(self) -> Balance:
        """Return the amount that the shop is owed now."""
        return await _converting_errors(self._client.balance())

    async def payouts(self) -> list[Payout]:
        """Return the latest payouts, newest first."""
        return await _converting_errors(_first(self._client.payouts(), PAYOUTS))

    async def settlement(self, payout_id: str) -> tuple[Payout, list[PayoutLine], tuple[Terms, ...]]:
        """Return a payout with all its lines, and the shop's terms."""
        payout = await _converting_errors(self._client.payout(payout_id))
        lines = await _converting_errors(_first(self._client.payout_lines(payout_id), payout.line_count))
        return payout, lines, await _converting_errors(self._client.terms())

    async def disputes(self, order_id: str) -> list[Dispute]:
        """Return the disputes of an order, newest first."""
        return await _converting_errors(_first(self._client.disputes(order_id=order_id), DISPUTES))

    async def dispute(self, dispute_id: str) -> Dispute:
        """Return a dispute with all its statements."""
        return await _converting_errors(self._client.dispute(str(dispute_id)))

    async def answer_dispute(self, dispute_id: str, answer: str, text: str, key: str) -> Dispute:
        """Accept a dispute, send evidence, or appeal. A repeated call with the same key is applied once."""
        if answer == "accept":
            return await _converting_errors(self._client.accept_dispute(dispute_id))
        call = self._client.appeal if answer == "appeal" else self._client.submit_evidence
        return await _converting_errors(call(dispute_id, text, idempotency_key=key))


async def _first(found: AsyncIterator[T], most: int) -> list[T]:
    """Return at most this many items."""
    items: list[T] = []
    async for item in found:
        items.append(item)
        if len(items) >= most:
            break
    return items


async def _converting_errors(answer: Awaitable[T]) -> T:
    """Return the client's answer, and turn the client's errors into PaymentError."""
    try:
        return await answer
    except CuotaError as error:
        raise PaymentError(error) from error
